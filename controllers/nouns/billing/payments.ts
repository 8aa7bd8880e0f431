/** The exchange with the payment processor, until the signal aborts. Everything is a row in PostgreSQL before anything
 *  is sent, so that the next process can continue. */
import { countPaymentEvents, countPushes, forgetPaymentEvents, readComparison } from '../../../db/billing/index.ts'
import { orUnavailable } from '../../kit/outage.ts'
import type { Parts } from '../../kit/parts.ts'
import { compareDaily } from './comparison.ts'
import { processEvent } from './payment-events.ts'
import type { BillingRun, PaymentParts } from './progress.ts'
import { sendReminders } from './reminders.ts'
import { pushInvoice } from './push.ts'
import { adjustSuspensions } from './suspension.ts'
import { Outages } from '../../../kit/sys/outages.ts'

const ROUND_MILLISECONDS = 5_000
const UPKEEP_MILLISECONDS = 60_000
const EVENTS_KEPT_MILLISECONDS = 90 * 86_400_000

/** Never throws. Does nothing without a processor. */
export async function runPayments(parts: BillingRun, signal: AbortSignal): Promise<void> {
  const { clock, db, log, processor } = parts
  if (processor === undefined) return
  const own: PaymentParts = { ...parts, processor }
  const processing = new Outages({ log, clock }, 'payments not processed')
  const comparing = new Outages({ log, clock }, 'accounts not held against their invoices')
  let upkeepAt = 0
  while (!signal.aborted) {
    await clock.sleep(ROUND_MILLISECONDS, signal)
    if (signal.aborted) return
    await processing.attempt(() => processPayments(own, signal))
    if (clock.monotonicMilliseconds() < upkeepAt) continue
    upkeepAt = clock.monotonicMilliseconds() + UPKEEP_MILLISECONDS
    await comparing.attempt(() => upkeep(own))
    await report(db, parts.onBilled).catch(() => {}) // the next round reports it
  }
}

/** Everything that is due now: events, then invoices. Throws Unavailable when the database is unavailable. */
export async function processPayments(parts: PaymentParts, signal?: AbortSignal): Promise<void> {
  const isStopped = () => signal?.aborted === true
  while (!isStopped() && (await orUnavailable(processEvent(parts))));
  while (!isStopped() && (await orUnavailable(pushInvoice(parts))));
}

/** Throws Unavailable. */
export async function upkeep(parts: PaymentParts): Promise<void> {
  const { clock, db } = parts
  await orUnavailable(adjustSuspensions(parts))
  await orUnavailable(sendReminders(parts))
  await orUnavailable(forgetPaymentEvents(db, new Date(clock.now().getTime() - EVENTS_KEPT_MILLISECONDS)))
  await compareDaily(parts)
}

async function report(db: Parts['db'], onBilled: BillingRun['onBilled']): Promise<void> {
  const { waiting, failed } = await countPushes(db)
  const { differences } = await readComparison(db)
  onBilled?.({
    invoicesUnsent: waiting,
    invoicesUnsentFailed: failed,
    paymentEventsWaiting: await countPaymentEvents(db),
    paymentDifferences: differences.length,
  })
}
