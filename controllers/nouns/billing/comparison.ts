/** Every night the ledger is compared with itself and with the payment processor. What was only late is corrected; a
 *  difference that remains is reported, and nothing is changed. */
import {
  hasInvoice,
  isComparisonDue,
  listBilledInvoices,
  listLedgerDifferences,
  type PaymentDifference,
  recordComparison,
} from '../../../db/billing/index.ts'
import { paymentStatusOf } from '../../../domain/billing/payment.ts'
import { isUuid } from '../../../domain/uuid.ts'
import type { ProcessorInvoice } from '../../../integrations/payments/processor.ts'
import { orUnavailable } from '../../kit/outage.ts'
import { recordInvoiceState } from './invoice-state.ts'
import type { PaymentParts } from './progress.ts'

const DAY_MILLISECONDS = 86_400_000
/** Invoices younger than this are compared. */
const COMPARED_DAYS = 100
/** At the processor an invoice may be older than its row by this much: clocks differ. */
const MARGIN_MILLISECONDS = DAY_MILLISECONDS
/** UTC. */
const NIGHT_HOUR = 3

/** Compares once a night. Throws Unavailable when the database or the processor is; the next round tries again. */
export async function compareDaily(parts: PaymentParts): Promise<void> {
  const { clock, db, log } = parts
  const now = clock.now()
  if (!(await orUnavailable(isComparisonDue(db, now)))) return
  const differences = await compareLedger(parts)
  for (const { subject, kind, detail } of differences)
    log.error('ledger and payment processor differ', { subject, kind, detail })
  await orUnavailable(recordComparison(db, differences, { now, nextAt: nightAfter(now) }))
}

const nightAfter = (now: Date): Date => {
  const tonight = Date.UTC(now.getUTCFullYear(), now.getUTCMonth(), now.getUTCDate(), NIGHT_HOUR)
  return new Date(tonight > now.getTime() ? tonight : tonight + DAY_MILLISECONDS)
}

/** Throws Unavailable. */
export async function compareLedger(parts: PaymentParts): Promise<readonly PaymentDifference[]> {
  const { clock, db, processor } = parts
  const since = new Date(clock.now().getTime() - COMPARED_DAYS * DAY_MILLISECONDS)
  const there = new Map<string, ProcessorInvoice>()
  for await (const invoice of processor.listInvoices(new Date(since.getTime() - MARGIN_MILLISECONDS)))
    if (invoice.invoiceId !== undefined) there.set(invoice.id, invoice)
  const here = await orUnavailable(listBilledInvoices(db, since))
  const differences = [...(await orUnavailable(listLedgerDifferences(db)))]
  for (const row of here) {
    differences.push(...(await compareInvoice(parts, row, there.get(row.processorId))))
    there.delete(row.processorId)
  }
  for (const invoice of there.values()) differences.push(...(await judgeUnknown(parts, invoice)))
  return differences
}

type LedgerInvoice = Awaited<ReturnType<typeof listBilledInvoices>>[number]

/** Compares one invoice. A payment status that no event delivered is recorded here. */
async function compareInvoice(
  parts: PaymentParts,
  { id: subject, processorId, dueCents, status }: LedgerInvoice,
  listed: ProcessorInvoice | undefined,
): Promise<readonly PaymentDifference[]> {
  const isPaid = listed?.status === 'paid' && status === 'paid'
  const invoice = isPaid ? listed : await parts.processor.readInvoice(processorId)
  if (invoice === undefined) return [{ subject, kind: 'missing_at_processor', detail: processorId }]
  if (invoice.status === 'draft') return []
  const found: PaymentDifference[] = []
  if (invoice.totalCents !== dueCents)
    found.push({
      subject,
      kind: 'amount',
      detail: `${invoice.totalCents} cents at the processor, ${dueCents} in the ledger`,
    })
  if (status === 'paid' && invoice.status !== 'paid')
    found.push({ subject, kind: 'status', detail: `paid here, ${invoice.status} at the processor` })
  else if (invoice.status === 'void') found.push({ subject, kind: 'status', detail: 'it was voided at the processor' })
  if (paymentStatusOf(invoice) !== status) await recordInvoiceState(parts, subject, invoice)
  return found
}

/** An invoice at the processor that refers to one of ours, which has another invoice there. Drafts are still being
 *  sent. */
async function judgeUnknown(
  { db }: PaymentParts,
  { id, invoiceId = '', status }: ProcessorInvoice,
): Promise<readonly PaymentDifference[]> {
  if (status === 'draft' || status === 'void') return []
  const isOurs = isUuid(invoiceId) && (await orUnavailable(hasInvoice(db, invoiceId)))
  return [
    isOurs
      ? { subject: id, kind: 'charged_twice', detail: `another invoice for ${invoiceId}` }
      : { subject: id, kind: 'missing_in_ledger', detail: `made for ${invoiceId}` },
  ]
}
