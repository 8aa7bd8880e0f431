/** Hour rows that nobody needs any more. What they add up to, `usage_day`, stays: usage, log and invoices are made of
 *  that. */
import { sql } from 'kysely'
import type { Queries } from '../kit/open.ts'

export interface Retention {
  /** Hours before it go. */
  readonly before: Date
  /** Hours of months that are still to be invoiced or paid stay until here. */
  readonly unpaidBefore: Date
}

/** Deletes hour rows of months that are closed, `batch` of them at most; answers how many. */
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
