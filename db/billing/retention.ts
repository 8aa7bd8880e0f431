/** Hour rows that are no longer needed. Their sums, `usage_day`, stay: usage, log and invoices are computed from
 *  those. */
import { sql } from 'kysely'
import type { Queries } from '../kit/open.ts'

export interface Retention {
  /** Hours before it are deleted. */
  readonly before: Date
  /** Hours of months that are not invoiced or paid yet are kept back to this time. */
  readonly unpaidBefore: Date
}

/** Deletes hour rows of closed months, at most `batch`; returns how many. */
export async function pruneHours(
  queries: Queries,
  { before, unpaidBefore }: Retention,
  batch: number,
): Promise<number> {
  const { numAffectedRows } = await sql`
    delete from usage_hour where ctid = any(array(
      select hour.ctid from usage_hour hour join billed_life life on life.id = hour.life
      where hour.hour < least(${before}::timestamptz, (select closed_until from metering))
        and (hour.hour < ${unpaidBefore} or not (
          exists (select from invoice where invoice.account_id = life.account_id
            and period = to_char(hour.hour at time zone 'UTC', 'YYYY-MM') and payment_status <> 'paid'
            and total_cents > credit_applied_cents)
          or exists (select from invoice_task where invoice_task.account_id = life.account_id
            and period = to_char(hour.hour at time zone 'UTC', 'YYYY-MM'))))
      limit ${batch}))`.execute(queries)
  return Number(numAffectedRows ?? 0n)
}
