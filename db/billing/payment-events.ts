/** Events from the payment processor: stored when they arrive, processed once. */
import { sql } from 'kysely'
import type { Database, Queries } from '../kit/open.ts'
import { afterFailure } from './retry.ts'
import { updateWhere } from '../kit/where.ts'

export interface StoredEvent {
  readonly id: string
  readonly type: string
  /** At the processor. */
  readonly invoiceId: string | null
  readonly customerId: string | null
}

/** Does nothing when an event of this id was stored before. */
export async function storePaymentEvent(queries: Queries, event: StoredEvent, now: Date): Promise<void> {
  await queries
    .insertInto('payment_event')
    .values({
      id: event.id,
      type: event.type,
      processor_invoice_id: event.invoiceId,
      customer_id: event.customerId,
      received_at: now,
      next_attempt_at: now,
    })
    .onConflict((conflict) => conflict.doNothing())
    .execute()
}

/** Leases the event that has waited longest; undefined when none is due. */
export async function claimPaymentEvent(db: Database, now: Date, leaseUntil: Date): Promise<StoredEvent | undefined> {
  const { rows } = await sql<StoredEvent>`
    update payment_event set next_attempt_at = ${leaseUntil} where id = (
      select id from payment_event where processed_at is null and next_attempt_at <= ${now}
      order by next_attempt_at, id limit 1 for update skip locked
    )
    returning id, type, processor_invoice_id as "invoiceId", customer_id as "customerId"`.execute(db)
  return rows[0]
}

export async function recordEventProcessed(queries: Queries, id: string, now: Date): Promise<void> {
  await updateWhere(queries, 'payment_event', { id }).set({ processed_at: now, last_error: null }).execute()
}

export async function recordEventFailure(queries: Queries, id: string, now: Date, error: unknown): Promise<void> {
  await sql`update payment_event set ${afterFailure(now, error)} where id = ${id}`.execute(queries)
}

/** Events that were processed before the instant: the processor repeats none that is so old. */
export async function forgetPaymentEvents(queries: Queries, before: Date): Promise<void> {
  await queries.deleteFrom('payment_event').where('processed_at', '<', before).execute()
}

/** Events that are not processed yet. */
export async function countPaymentEvents(queries: Queries): Promise<number> {
  const { count } = await queries
    .selectFrom('payment_event')
    .select(({ fn }) => fn.countAll<number>().as('count'))
    .where('processed_at', 'is', null)
    .executeTakeFirstOrThrow()
  return count
}
