/** Creates the invoices of each month that is over. It continues wherever the previous process stopped. */
import {
  countWaiting,
  finishInvoiceRun,
  invoiceNext,
  listMonthsToInvoice,
  openInvoiceRun,
} from '../../../db/billing/index.ts'
import { periodOf } from '../../../domain/billing/rules.ts'
import type { Month } from '../../../domain/billing/transfer.ts'
import { orUnavailable } from '../../kit/outage.ts'
import type { Parts } from '../../kit/parts.ts'
import type { BillingRun } from './progress.ts'
import { forgetHours } from './retention.ts'
import { Outages } from '../../../kit/sys/outages.ts'

const ROUND_MILLISECONDS = 60_000
/** How long after its end a month is closed: late samples have arrived by then. */
const GRACE_MILLISECONDS = 3_600_000
const UPKEEP_MILLISECONDS = 3_600_000
/** Invoices that are created at the same time: most of the time of one is the wait for its commit, which they share. */
const INVOICES_AT_ONCE = 4

/** Creates invoices until the signal aborts. Never throws. */
export async function runInvoicing(parts: BillingRun, signal: AbortSignal): Promise<void> {
  const making = new Outages(parts, 'invoices not made')
  const forgetting = new Outages(parts, 'old hours not deleted')
  let upkeepAt = parts.clock.monotonicMilliseconds() + UPKEEP_MILLISECONDS
  while (!signal.aborted) {
    await parts.clock.sleep(ROUND_MILLISECONDS, signal)
    if (signal.aborted) return
    await making.attempt(() => invoiceMonths(parts, signal))
    await countWaiting(parts.db).then(
      ({ waiting, failed }) => parts.onBilled?.({ invoicesWaiting: waiting, invoicesFailed: failed }),
      () => {}, // the next round reports it
    )
    if (parts.clock.monotonicMilliseconds() < upkeepAt) continue
    upkeepAt = parts.clock.monotonicMilliseconds() + UPKEEP_MILLISECONDS
    await forgetting.attempt(() => forgetHours(parts, signal))
  }
}

/** One round: every month that is over, and every account that waits for another attempt. Throws Unavailable. */
export async function invoiceMonths(
  parts: Pick<Parts, 'clock' | 'db' | 'log' | 'random'>,
  signal?: AbortSignal,
): Promise<void> {
  const { clock, db, log } = parts
  const done = new Set<string>()
  for (;;) {
    const before = new Date(clock.now().getTime() - GRACE_MILLISECONDS)
    const month = (await orUnavailable(listMonthsToInvoice(db, before))).find((each) => !done.has(periodOf(each)))
    if (month === undefined || !(await orUnavailable(openInvoiceRun(db, month, clock.now())))) return
    await invoiceMonth(parts, month, signal)
    if (signal?.aborted === true) return
    if (await orUnavailable(finishInvoiceRun(db, month, clock.now())))
      log.info('invoices of a month made', { period: periodOf(month) })
    done.add(periodOf(month))
  }
}

async function invoiceMonth(
  { clock, db, log, random }: Pick<Parts, 'clock' | 'db' | 'log' | 'random'>,
  month: Month,
  signal: AbortSignal | undefined,
): Promise<void> {
  const onFailure = (accountId: string, error: unknown) =>
    log.error('an invoice was not made', { account_id: accountId, period: periodOf(month), error })
  const makeThem = async (): Promise<void> => {
    while ((await orUnavailable(invoiceNext({ db, random }, month, clock.now(), onFailure))) !== undefined)
      if (signal?.aborted === true) return
  }
  // All of them end before a failure is thrown: the next round never overlaps with this one.
  const ends = await Promise.allSettled(Array.from({ length: INVOICES_AT_ONCE }, makeThem))
  for (const end of ends) if (end.status === 'rejected') throw end.reason
}
