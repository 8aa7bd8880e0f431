/** How long the hours are kept from which usage was added up. */
import { pruneHours } from '../../../db/billing/index.ts'
import { orUnavailable } from '../../kit/outage.ts'
import type { Parts } from '../../kit/parts.ts'

const DAY_MILLISECONDS = 86_400_000
/** Longer than a payment can be disputed at the processor. */
export const HOURS_KEPT_DAYS = 180
/** Hours that are not invoiced or paid are kept longer, but not for ever: a cloud without a processor is never paid. */
export const UNPAID_HOURS_KEPT_DAYS = 1_100
const BATCH = 10_000

/** Deletes older hours, batch by batch, until the signal aborts. Throws Unavailable. */
export async function forgetHours({ clock, db }: Pick<Parts, 'clock' | 'db'>, signal?: AbortSignal): Promise<void> {
  const daysAgo = (days: number) => new Date(clock.now().getTime() - days * DAY_MILLISECONDS)
  const limits = { before: daysAgo(HOURS_KEPT_DAYS), unpaidBefore: daysAgo(UNPAID_HOURS_KEPT_DAYS) }
  while (signal?.aborted !== true && (await orUnavailable(pruneHours(db, limits, BATCH))) === BATCH);
}
