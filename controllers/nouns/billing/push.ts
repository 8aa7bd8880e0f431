/** Sends an invoice to the payment processor: created, filled, charged. Each step first reads the current state, so
 *  that it may stop after any request, answered or not, and continue in any other process. */
import {
  claimPush,
  findPaymentCustomer,
  type InvoicePush,
  readInvoiceLines,
  readPayer,
  recordKey,
  recordPaymentCustomer,
  recordProcessorInvoice,
  recordPushFailure,
} from '../../../db/billing/index.ts'
import {
  LINES_MAXIMUM,
  type ProcessorInvoice,
  type ProcessorLine,
  ProcessorRefusal,
} from '../../../integrations/payments/processor.ts'
import { recordInvoiceState } from './invoice-state.ts'
import type { PaymentParts } from './progress.ts'

/** For how long no other process pushes the invoice. */
const LEASE_MILLISECONDS = 300_000
/** The processor forgets idempotency keys after a day: older ones are no longer used. By then no request that was sent
 *  with them can still be under way. */
const KEY_MILLISECONDS = 23 * 3_600_000

/** Pushes one of the invoices that are due; answers false when none is. */
export async function pushInvoice(parts: PaymentParts): Promise<boolean> {
  const { clock, db, log } = parts
  const now = clock.now()
  const push = await claimPush(db, now, new Date(now.getTime() + LEASE_MILLISECONDS))
  if (push === undefined) return false
  try {
    const invoice = await handOver(parts, push)
    await recordInvoiceState(parts, push.invoiceId, invoice)
  } catch (error) {
    log.warn('an invoice was not handed over', { invoice_id: push.invoiceId, account_id: push.accountId, error })
    const needsNewKey = error instanceof ProcessorRefusal
    await recordPushFailure(db, push.invoiceId, { now: clock.now(), error, needsNewKey })
  }
  return true
}

async function handOver(parts: PaymentParts, push: InvoicePush): Promise<ProcessorInvoice> {
  const { processor } = parts
  const key = await keyOf(parts, push)
  const draft = await ensureDraft(parts, push, key)
  if (draft.status !== 'draft') return draft
  await addMissingLines(parts, push, draft.id, key)
  const filled = await processor.readInvoice(draft.id)
  if (filled === undefined || filled.status !== 'draft')
    throw new Error('the invoice was changed at the payment processor while it was filled')
  if (filled.totalCents !== push.dueCents) {
    await processor.deleteDraft(draft.id)
    await recordProcessorInvoice(parts.db, push.invoiceId, null)
    throw new ProcessorRefusal(409, 'wrong_total', new Error(`${filled.totalCents} instead of ${push.dueCents}`))
  }
  return await processor.finalizeInvoice(draft.id, `${key}:finalize`)
}

/** The prefix of its idempotency keys. Those of a generation are used for less than a day. */
async function keyOf({ db, clock }: PaymentParts, push: InvoicePush): Promise<string> {
  const now = clock.now()
  const isUsable = push.keySince !== null && now.getTime() - push.keySince.getTime() < KEY_MILLISECONDS
  const generation = push.keySince === null || isUsable ? push.keyGeneration : push.keyGeneration + 1
  if (!isUsable) await recordKey(db, push.invoiceId, generation, now)
  return `inv:${push.invoiceId}:${generation}`
}

/** The invoice at the processor, found or created. */
async function ensureDraft(parts: PaymentParts, push: InvoicePush, key: string): Promise<ProcessorInvoice> {
  const { db, processor } = parts
  const { invoiceId, processorId } = push
  const known = processorId === null ? undefined : await processor.readInvoice(processorId)
  if (known !== undefined) return known
  const customerId = await ensureCustomer(parts, push.accountId)
  const found = await processor.findInvoice(customerId, invoiceId)
  const invoice =
    found === undefined
      ? await processor.createInvoice(
          { customerId, invoiceId, currency: push.currency, description: `Usage of ${push.period}` },
          `${key}:create`,
        )
      : ((await processor.readInvoice(found.id)) ?? found)
  await recordProcessorInvoice(db, invoiceId, invoice.id)
  return invoice
}

/** The account's customer at the processor: the account may never have saved a payment method. */
async function ensureCustomer({ db, processor, clock }: PaymentParts, accountId: string): Promise<string> {
  return (
    (await findPaymentCustomer(db, accountId)) ??
    (await recordPaymentCustomer(
      db,
      accountId,
      await processor.createCustomer(await readPayer(db, accountId)),
      clock.now(),
    ))
  )
}

async function addMissingLines({ db, processor }: PaymentParts, push: InvoicePush, id: string, key: string) {
  const there = await processor.readLines(id)
  const lines = (await readInvoiceLines(db, push.invoiceId)).map(lineOf)
  for (let start = 0; start < lines.length; start += LINES_MAXIMUM) {
    const missing = lines.slice(start, start + LINES_MAXIMUM).filter(({ position }) => !there.has(position))
    // The batch is named by its first line: it is the same whenever it is sent with the same key.
    if (missing.length > 0) await processor.addLines(id, missing, `${key}:lines:${start}`)
  }
}

const DESCRIPTION_LENGTH_MAXIMUM = 500

const lineOf = (line: Awaited<ReturnType<typeof readInvoiceLines>>[number]): ProcessorLine => ({
  position: line.position,
  amountCents: line.amount_cents,
  description: (line.kind === 'credit'
    ? `Credit: ${line.name}`
    : [`${line.resource_type} ${line.name}`, line.plan, line.hours > 0 ? `${line.hours} h` : '']
        .filter((part) => part !== '')
        .join(', ')
  ).slice(0, DESCRIPTION_LENGTH_MAXIMUM),
})
