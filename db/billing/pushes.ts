/** Handing invoices over to the payment processor, and their state there. */
import { sql, type Transaction } from 'kysely'
import type { PaymentStatus } from '../../domain/billing/payment.ts'
import type { Database, Queries } from '../kit/open.ts'
import type { Tables } from '../tables.ts'
import { afterFailure } from './retry.ts'
import { deleteWhere, selectWhere, updateWhere } from '../kit/where.ts'

export interface InvoicePush {
  readonly invoiceId: string
  readonly accountId: string
  readonly period: string
  readonly currency: string
  /** The amount that the customer must pay. */
  readonly dueCents: number
  readonly processorId: string | null
  readonly keyGeneration: number
  /** Since when keys of this generation are used; null before the first. */
  readonly keySince: Date | null
}

/** Leases the invoice that has waited longest; undefined when none is due. */
export async function claimPush(db: Database, now: Date, leaseUntil: Date): Promise<InvoicePush | undefined> {
  const { rows } = await sql<InvoicePush>`
    with due as (
      select invoice_id from invoice_push where next_attempt_at <= ${now}
      order by next_attempt_at, invoice_id limit 1 for update skip locked
    ), leased as (
      update invoice_push push set next_attempt_at = ${leaseUntil} from due where push.invoice_id = due.invoice_id
      returning push.*
    )
    select invoice.id as "invoiceId", account_id as "accountId", period, currency,
      total_cents - credit_applied_cents as "dueCents", processor_id as "processorId",
      key_generation as "keyGeneration", key_since as "keySince"
    from leased join invoice on invoice.id = leased.invoice_id`.execute(db)
  return rows[0]
}

/** From now on its requests use keys of this generation. */
export async function recordKey(queries: Queries, invoiceId: string, generation: number, now: Date): Promise<void> {
  await updateWhere(queries, 'invoice_push', { invoice_id: invoiceId })
    .set({ key_generation: generation, key_since: now })
    .execute()
}

/** It is retried later; with new keys when the processor would repeat its answer to the old ones. */
export async function recordPushFailure(
  queries: Queries,
  invoiceId: string,
  failure: { readonly now: Date; readonly error: unknown; readonly needsNewKey: boolean },
): Promise<void> {
  await sql`
    update invoice_push set ${afterFailure(failure.now, failure.error)},
      key_generation = key_generation + ${failure.needsNewKey ? 1 : 0}::integer
    where invoice_id = ${invoiceId}`.execute(queries)
}

/** The invoice at the processor for ours; null for none. */
export async function recordProcessorInvoice(
  queries: Queries,
  invoiceId: string,
  processorId: string | null,
): Promise<void> {
  await updateWhere(queries, 'invoice', { id: invoiceId }).set({ processor_id: processorId }).execute()
}

export async function readInvoiceLines(queries: Queries, invoiceId: string) {
  return await selectWhere(queries, 'invoice_line', { invoice_id: invoiceId })
    .select(['position', 'kind', 'resource_type', 'name', 'plan', 'hours', 'amount_cents'])
    .orderBy('position')
    .execute()
}

export interface BilledState {
  readonly invoiceId: string
  readonly processorId: string
  readonly status: PaymentStatus
  readonly hostedUrl: string | null
  readonly now: Date
}

export interface BilledChange {
  readonly accountId: string
  readonly period: string
  readonly dueCents: number
  readonly before: PaymentStatus
  readonly after: PaymentStatus
}

/** Records the processor's state of an invoice that it charges. Returns the resulting change; undefined for an invoice
 *  that is not ours. A paid invoice stays paid, even if an older answer arrives later. */
export async function recordBilled(
  tx: Transaction<Tables>,
  { invoiceId, processorId, status, hostedUrl, now }: BilledState,
): Promise<BilledChange | undefined> {
  const before = await selectWhere(tx, 'invoice', { id: invoiceId })
    .select(['account_id', 'period', 'total_cents', 'credit_applied_cents', 'payment_status', 'overdue_since'])
    .forUpdate()
    .executeTakeFirst()
  if (before === undefined) return undefined
  const after = before.payment_status === 'paid' ? 'paid' : status
  await updateWhere(tx, 'invoice', { id: invoiceId })
    .set({
      processor_id: processorId,
      payment_status: after,
      hosted_invoice_url: hostedUrl,
      overdue_since: after === 'overdue' ? (before.overdue_since ?? now) : null,
    })
    .execute()
  await deleteWhere(tx, 'invoice_push', { invoice_id: invoiceId }).execute()
  return {
    accountId: before.account_id,
    period: before.period,
    dueCents: before.total_cents - before.credit_applied_cents,
    before: before.payment_status,
    after,
  }
}

/** Invoices that the processor does not charge yet, and how many of them have a failed attempt. */
export async function countPushes(queries: Queries): Promise<{ readonly waiting: number; readonly failed: number }> {
  return await queries
    .selectFrom('invoice_push')
    .select(({ fn }) => [
      fn.countAll<number>().as('waiting'),
      fn.countAll<number>().filterWhere('attempts', '>', 0).as('failed'),
    ])
    .executeTakeFirstOrThrow()
}

export interface FailedPush {
  readonly invoiceId: string
  readonly accountId: string
  readonly period: string
  readonly attempts: number
  readonly nextAttemptAt: Date
  readonly error: string
}

/** Invoices with a failed attempt to hand them over, in the order of their ids. */
export async function listFailedPushes(queries: Queries, limit: number): Promise<readonly FailedPush[]> {
  const rows = await queries
    .selectFrom('invoice_push')
    .innerJoin('invoice', 'invoice.id', 'invoice_push.invoice_id')
    .select(['invoice_id', 'account_id', 'period', 'attempts', 'next_attempt_at', 'last_error'])
    .where('attempts', '>', 0)
    .orderBy('invoice_id')
    .limit(limit)
    .execute()
  return rows.map((row) => ({
    invoiceId: row.invoice_id,
    accountId: row.account_id,
    period: row.period,
    attempts: row.attempts,
    nextAttemptAt: row.next_attempt_at,
    error: row.last_error ?? '',
  }))
}

/** Makes every failed invoice due for handover now; returns how many. */
export async function retryPushes(queries: Queries, now: Date): Promise<number> {
  const { numUpdatedRows } = await queries
    .updateTable('invoice_push')
    .set({ next_attempt_at: now })
    .where('attempts', '>', 0)
    .executeTakeFirst()
  return Number(numUpdatedRows)
}
