/** Payment methods of accounts, at the payment processor, and the events that it sends. */
import type { z } from 'zod'
import * as routes from '../../../resources/payment/index.ts'
import { Problem, Unavailable, notFound } from '../../../domain/problem.ts'
import { type StandingFacts, standingOf } from '../../../domain/account/standing.ts'
import { readStanding } from '../../../db/account/index.ts'
import { appendAudit } from '../../../db/audit/index.ts'
import {
  findPaymentCustomer,
  readPayer,
  recordDefaultMethod,
  recordPaymentCustomer,
  storePaymentEvent,
} from '../../../db/billing/index.ts'
import type { Answer, Call, Caller, Customer } from '../../../kit/http/call.ts'
import { type Endpoint, customerEndpoint, publicEndpoint } from '../../../kit/http/endpoint.ts'
import type { Payments } from '../../../integrations/payments/configuration.ts'
import {
  type CustomerMethods,
  type PaymentMethod,
  ProcessorRefusal,
  defaultOf,
} from '../../../integrations/payments/processor.ts'
import { CURRENCY } from '../../../resources/billing/index.ts'
import { type AuditedCall, auditEntryOf } from '../../kit/change/audit.ts'
import type { IdentityParts } from '../../identity/parts.ts'
import { answerOf, readPage } from '../../kit/list/page.ts'
import type { Parts } from '../../kit/parts.ts'
import { noun } from '../../kit/noun.ts'

type PaymentParts = Pick<Parts, 'clock' | 'cursors' | 'db' | 'payments' | 'random'> & Pick<IdentityParts, 'origin'>

/** Where the processor redirects customers to. */
const RETURN_PATH = '/settings/billing'

const paymentEndpoints = (parts: PaymentParts): readonly Endpoint[] => [
  customerEndpoint(routes.getPaymentConfiguration, (call) => readConfiguration(parts, call)),
  customerEndpoint(routes.listPaymentMethods, (call) => list(parts, call)),
  customerEndpoint(routes.removePaymentMethod, (call) => remove(parts, call)),
  customerEndpoint(routes.setDefaultPaymentMethod, (call) => setDefault(parts, call)),
  customerEndpoint(routes.createPaymentSetupSession, (call) => setUp(parts, call)),
  publicEndpoint(routes.receivePaymentEvent, (call) => receive(parts, call)),
]

function requirePayments({ payments }: PaymentParts): Payments {
  if (payments === undefined)
    throw new Problem(503, 'This cloud has no payment processor.', { reason: 'not_configured' })
  return payments
}

/** Customers cannot do anything about a refusal: they get 503, and the log gets the cause. */
async function answerFrom<T>(request: Promise<T>): Promise<T> {
  try {
    return await request
  } catch (error) {
    throw error instanceof ProcessorRefusal ? new Unavailable('the payment processor', error) : error
  }
}

async function readConfiguration(
  { db, payments }: PaymentParts,
  { caller, now }: Call<typeof routes.getPaymentConfiguration, Customer>,
): Promise<Answer> {
  return {
    status: 200,
    body: {
      payments_configured: payments !== undefined,
      publishable_key: payments?.publishableKey ?? null,
      standing: standingView(await readStanding(db, caller.accountId, now)),
    },
  }
}

export function standingView(facts: StandingFacts): z.infer<typeof routes.AccountStanding> {
  const { canCreateResources, reason } = standingOf(facts)
  return {
    requires_billing_approval: facts.requiresBillingApproval,
    can_create_resources: canCreateResources,
    reason,
    suspended_for_payment_at: facts.suspendedForPaymentAt?.toISOString() ?? null,
    suspended_by_staff_at: facts.suspendedByStaffAt?.toISOString() ?? null,
  }
}

const NO_METHODS: CustomerMethods = { methods: [], defaultId: undefined }

/** The methods that the processor has now; an account that is no customer there has none. */
async function readMethods(parts: PaymentParts, accountId: string): Promise<CustomerMethods> {
  const { processor } = requirePayments(parts)
  const customerId = await findPaymentCustomer(parts.db, accountId)
  if (customerId === undefined) return NO_METHODS
  const found = await answerFrom(processor.readMethods(customerId))
  await recordDefaultMethod(parts.db, customerId, defaultOf(found))
  return found
}

const compareText = (one: string, other: string): number => (one < other ? -1 : one > other ? 1 : 0)

const methodView = (method: PaymentMethod, defaultId: string | undefined) => ({
  id: method.id,
  type: method.type,
  brand: method.brand,
  last4: method.last4,
  exp_month: method.expiresMonth,
  exp_year: method.expiresYear,
  is_default: method.id === defaultId,
})

async function list(parts: PaymentParts, call: Call<typeof routes.listPaymentMethods, Customer>): Promise<Answer> {
  const { methods, defaultId } = await readMethods(parts, call.caller.accountId)
  const sorted = [...methods].sort((one, other) => compareText(one.id, other.id))
  const page = await readPage(
    parts.cursors,
    call,
    (after, count) => sorted.filter(({ id }) => after === undefined || id > after.id).slice(0, count),
    ({ id }) => ({ sortKey: id, id }),
    { viewsOf: (found) => found.map((method) => methodView(method, defaultId)) },
  )
  await audit(parts, call)
  return answerOf(page)
}

const audit = (parts: PaymentParts, call: AuditedCall, resourceId = ''): Promise<void> =>
  parts.db
    .transaction()
    .execute((tx) => appendAudit(tx, auditEntryOf(call, { resourceType: 'payment_method', resourceId }), parts))

/** The customer who has the method. Throws 404 when the account has no such method. */
async function requireMethod(parts: PaymentParts, accountId: string, id: string): Promise<string> {
  const { methods } = await readMethods(parts, accountId)
  const customerId = await findPaymentCustomer(parts.db, accountId)
  if (customerId === undefined || methods.every((method) => method.id !== id)) throw notFound('payment method')
  return customerId
}

/** Removing and choosing are repeated when a request is repeated, so that the processor and the records here agree in
 *  the end; the event that follows confirms it. */
async function remove(parts: PaymentParts, call: Call<typeof routes.removePaymentMethod, Customer>): Promise<Answer> {
  const { processor } = requirePayments(parts)
  const { accountId } = call.caller
  const { id } = call.params
  const customerId = await requireMethod(parts, accountId, id)
  if (!(await answerFrom(processor.removeMethod(customerId, id)))) throw notFound('payment method')
  await readMethods(parts, accountId)
  await audit(parts, call, id)
  return { status: 204 }
}

async function setDefault(
  parts: PaymentParts,
  call: Call<typeof routes.setDefaultPaymentMethod, Customer>,
): Promise<Answer> {
  const { processor } = requirePayments(parts)
  const { accountId } = call.caller
  const { id } = call.params
  await answerFrom(processor.setDefaultMethod(await requireMethod(parts, accountId, id), id))
  await readMethods(parts, accountId)
  await audit(parts, call, id)
  return { status: 204 }
}

async function setUp(
  parts: PaymentParts,
  call: Call<typeof routes.createPaymentSetupSession, Customer>,
): Promise<Answer> {
  const { processor } = requirePayments(parts)
  const { db, origin } = parts
  const { accountId } = call.caller
  const customerId =
    (await findPaymentCustomer(db, accountId)) ??
    (await recordPaymentCustomer(
      db,
      accountId,
      await answerFrom(processor.createCustomer(await readPayer(db, accountId))),
      call.now,
    ))
  const url = await answerFrom(processor.createSetupSession(customerId, `${origin}${RETURN_PATH}`, CURRENCY))
  await audit(parts, call)
  return { status: 201, body: { url } }
}

const SIGNATURE = 'stripe-signature'

/** Stored before it is answered; the controllers process it from there. */
async function receive(
  parts: PaymentParts,
  { body, request, now }: Call<typeof routes.receivePaymentEvent, Caller>,
): Promise<Answer> {
  const payments = requirePayments(parts)
  const bytes = body as unknown as Uint8Array // the route reads its body as bytes
  const { id, type, invoiceId = null, customerId = null } = payments.readEvent(bytes, request.header(SIGNATURE), now)
  if (invoiceId !== null || customerId !== null)
    await storePaymentEvent(parts.db, { id, type, invoiceId, customerId }, now)
  return { status: 200, body: {} }
}

export const payment = noun<Parts & Pick<IdentityParts, 'origin'>>({ name: 'payment', endpoints: paymentEndpoints })
