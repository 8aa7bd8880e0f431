/** Events of the payment processor. An event only says where to look: the state is read from the processor, so neither
 *  the order nor the number of events matters. */
import { appendAudit } from '../../../db/audit/index.ts'
import {
  claimPaymentEvent,
  findAccountOfCustomer,
  recordDefaultMethod,
  recordEventFailure,
  recordEventProcessed,
  type StoredEvent,
} from '../../../db/billing/index.ts'
import { isUuid } from '../../../domain/uuid.ts'
import { defaultOf } from '../../../integrations/payments/processor.ts'
import { recordInvoiceState, systemEntry } from './invoice-state.ts'
import type { PaymentParts } from './progress.ts'

const LEASE_MILLISECONDS = 300_000
/** After these a customer has another payment method, which becomes the default when there is none. */
const SETUP_EVENTS: readonly string[] = ['checkout.session.completed', 'setup_intent.succeeded']

/** Processes one of the waiting events; answers false when there is none. */
export async function processEvent(parts: PaymentParts): Promise<boolean> {
  const { clock, db, log } = parts
  const now = clock.now()
  const event = await claimPaymentEvent(db, now, new Date(now.getTime() + LEASE_MILLISECONDS))
  if (event === undefined) return false
  try {
    if (event.invoiceId !== null) await readInvoice(parts, event.invoiceId)
    else if (event.customerId !== null) await readCustomer(parts, event, event.customerId)
    await recordEventProcessed(db, event.id, clock.now())
  } catch (error) {
    log.warn('an event of the payment processor was not used', { event_id: event.id, event_type: event.type, error })
    await recordEventFailure(db, event.id, clock.now(), error)
  }
  return true
}

async function readInvoice(parts: PaymentParts, processorId: string): Promise<void> {
  const invoice = await parts.processor.readInvoice(processorId)
  if (invoice?.invoiceId !== undefined && isUuid(invoice.invoiceId))
    await recordInvoiceState(parts, invoice.invoiceId, invoice)
}

async function readCustomer(
  { db, processor, clock, random }: PaymentParts,
  { id, type }: StoredEvent,
  customerId: string,
): Promise<void> {
  const accountId = await findAccountOfCustomer(db, customerId)
  if (accountId === undefined) return
  let found = await processor.readMethods(customerId)
  const isSetup = SETUP_EVENTS.includes(type)
  const [newest] = found.methods
  if (isSetup && found.defaultId === undefined && newest !== undefined) {
    await processor.setDefaultMethod(customerId, newest.id)
    found = { ...found, defaultId: newest.id }
  }
  await db.transaction().execute(async (tx) => {
    await recordDefaultMethod(tx, customerId, defaultOf(found))
    if (isSetup) await appendAudit(tx, systemEntry(accountId, 'account.payment_method_added', id), { clock, random })
  })
}
