/** The daily comparison of the ledger with itself and with the payment processor. */
import { sql } from 'kysely'
import type { PaymentStatus } from '../../domain/billing/payment.ts'
import type { Database, Queries } from '../kit/open.ts'

export interface PaymentDifference {
  /** Of an invoice or credit of ours, or of an invoice at the processor. */
  readonly subject: string
  readonly kind:
    | 'amount'
    | 'status'
    | 'missing_at_processor'
    | 'missing_in_ledger'
    | 'charged_twice'
    | 'lines'
    | 'credits'
  readonly detail: string
}

export interface LedgerInvoice {
  readonly id: string
  readonly processorId: string
  readonly dueCents: number
  readonly status: PaymentStatus
}

/** Invoices at the processor that were created since the instant. */
export async function listBilledInvoices(queries: Queries, since: Date): Promise<readonly LedgerInvoice[]> {
  const rows = await queries
    .selectFrom('invoice')
    .select(['id', 'processor_id', 'total_cents', 'credit_applied_cents', 'payment_status'])
    .where('created_at', '>=', since)
    .where('processor_id', 'is not', null)
    .execute()
  return rows.flatMap((row) =>
    row.processor_id === null
      ? []
      : [
          {
            id: row.id,
            processorId: row.processor_id,
            dueCents: row.total_cents - row.credit_applied_cents,
            status: row.payment_status,
          },
        ],
  )
}

/** Whether it is an invoice of ours. */
export async function hasInvoice(queries: Queries, id: string): Promise<boolean> {
  const { rows } = await sql`select from invoice where id::text = ${id}`.execute(queries)
  return rows.length > 0
}

const DIFFERENCES_MAXIMUM = 1_000

/** Inconsistencies within the ledger: lines that do not add up to their invoice, credits that differ from what they
 *  paid. */
export async function listLedgerDifferences(queries: Queries): Promise<readonly PaymentDifference[]> {
  const { rows } = await sql<PaymentDifference>`
    select invoice.id::text as subject, 'lines' as kind,
      'the lines add up to ' || coalesce(sum(amount_cents), 0) || ', not to ' || (total_cents - credit_applied_cents)
        as detail
    from invoice left join invoice_line on invoice_line.invoice_id = invoice.id
    group by invoice.id having coalesce(sum(amount_cents), 0) <> total_cents - credit_applied_cents
    union all
    select credit.id::text, 'credits',
      'it is spent by ' || spent_cents || ', but paid ' || coalesce(sum(applied.amount_cents), 0)
    from credit left join credit_application applied on applied.credit_id = credit.id
    group by credit.id having coalesce(sum(applied.amount_cents), 0) <> spent_cents
    limit ${DIFFERENCES_MAXIMUM}`.execute(queries)
  return rows
}

/** Whether the comparison of the day is still to be made. */
export async function isComparisonDue(queries: Queries, now: Date): Promise<boolean> {
  const { due_at } = await queries.selectFrom('payment_comparison').select('due_at').executeTakeFirstOrThrow()
  return due_at <= now
}

/** The new findings replace the previous ones. */
export async function recordComparison(
  db: Database,
  differences: readonly PaymentDifference[],
  at: { readonly now: Date; readonly nextAt: Date },
): Promise<void> {
  await db.transaction().execute(async (tx) => {
    await tx.updateTable('payment_comparison').set({ compared_at: at.now, due_at: at.nextAt }).execute()
    await tx.deleteFrom('payment_difference').execute()
    const rows = differences
      .slice(0, DIFFERENCES_MAXIMUM)
      .map(({ subject, kind, detail }) => ({ subject, kind, detail, found_at: at.now }))
    if (rows.length > 0)
      await tx
        .insertInto('payment_difference')
        .values(rows)
        .onConflict((conflict) => conflict.doNothing())
        .execute()
  })
}

/** The findings of the last comparison, and its time; null before the first. */
export async function readComparison(queries: Queries): Promise<{
  readonly comparedAt: Date | null
  readonly differences: readonly (PaymentDifference & { foundAt: Date })[]
}> {
  const { compared_at } = await queries.selectFrom('payment_comparison').select('compared_at').executeTakeFirstOrThrow()
  const rows = await queries
    .selectFrom('payment_difference')
    .selectAll()
    .orderBy('kind')
    .orderBy('subject')
    .limit(DIFFERENCES_MAXIMUM)
    .execute()
  return {
    comparedAt: compared_at,
    differences: rows.map(({ found_at, ...row }) => ({
      ...row,
      kind: row.kind as PaymentDifference['kind'], // only recordComparison writes them
      foundAt: found_at,
    })),
  }
}
