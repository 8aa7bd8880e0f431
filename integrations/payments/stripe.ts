/** The client of Stripe, or of a server with the same API. */
import Stripe from 'stripe'
import { z } from 'zod'
import { defined } from '../../domain/defined.ts'
import { badRequest, Unavailable } from '../../domain/problem.ts'
import {
  ACCOUNT_METADATA,
  INVOICE_METADATA,
  LINE_METADATA,
  type PaymentEvent,
  type PaymentMethod,
  type PaymentProcessor,
  type ProcessorInvoice,
  ProcessorRefusal,
} from './processor.ts'

export interface StripeOptions {
  /** URL of its API; `https://api.stripe.com` in production. */
  readonly url: URL
  readonly apiKey: string
  /** Replaces the network in tests. */
  readonly fetch?: typeof fetch
}

const TIMEOUT_MILLISECONDS = 30_000
const PAGE = 100
const NOT_FOUND = 404
/** Another request with the same idempotency key is being answered. */
const CONFLICT = 409
/** States of an invoice's payment in which it may still succeed automatically. */
const UNDER_WAY: readonly string[] = ['processing', 'succeeded']
const PAYMENTS = 'payments.data.payment.payment_intent'

/** Never retries: the caller knows whether a retry is right, and remembers that across restarts. */
export function openStripe({ url, apiKey, fetch }: StripeOptions): PaymentProcessor {
  const stripe = new Stripe(apiKey, {
    host: url.hostname,
    port: url.port === '' ? (url.protocol === 'http:' ? 80 : 443) : url.port,
    protocol: url.protocol === 'http:' ? 'http' : 'https',
    maxNetworkRetries: 0,
    timeout: TIMEOUT_MILLISECONDS,
    telemetry: false,
    ...(fetch === undefined ? {} : { httpClient: Stripe.createFetchHttpClient(fetch) }),
  })
  return { ...customersOf(stripe), ...draftsOf(stripe), ...invoicesOf(stripe) }
}

const customersOf = (
  stripe: Stripe,
): Pick<
  PaymentProcessor,
  'createCustomer' | 'createSetupSession' | 'readMethods' | 'setDefaultMethod' | 'removeMethod'
> => ({
  createCustomer: ({ accountId, name, email }) =>
    answered(async () => {
      const metadata = { [ACCOUNT_METADATA]: accountId }
      return (await stripe.customers.create({ name, metadata, ...defined({ email }) })).id
    }),
  createSetupSession: (customer, returnUrl, currency) =>
    answered(async () => {
      const session = await stripe.checkout.sessions.create({
        mode: 'setup',
        currency,
        customer,
        success_url: returnUrl,
        cancel_url: returnUrl,
      })
      if (session.url === null) throw new Error('a setup session has no address')
      return session.url
    }),
  readMethods: (id) =>
    answered(async () => {
      const customer = await stripe.customers.retrieve(id)
      const { data } = await stripe.customers.listPaymentMethods(id, { limit: PAGE })
      const chosen = customer.deleted === true ? null : customer.invoice_settings.default_payment_method
      return { methods: data.map(methodOf), defaultId: idOf(chosen) }
    }),
  setDefaultMethod: (id, methodId) =>
    answered(async () => {
      await stripe.customers.update(id, { invoice_settings: { default_payment_method: methodId } })
    }),
  removeMethod: (customerId, methodId) =>
    answered(async () => {
      const method = await orNone(stripe.paymentMethods.retrieve(methodId))
      if (method === undefined || idOf(method.customer) !== customerId) return false
      await stripe.paymentMethods.detach(methodId)
      return true
    }),
})

const draftsOf = (
  stripe: Stripe,
): Pick<PaymentProcessor, 'createInvoice' | 'readLines' | 'addLines' | 'deleteDraft' | 'finalizeInvoice'> => ({
  createInvoice: ({ customerId, invoiceId, currency, description }, idempotencyKey) =>
    answered(async () =>
      invoiceOf(
        await stripe.invoices.create(
          {
            customer: customerId,
            currency,
            description,
            auto_advance: false,
            collection_method: 'charge_automatically',
            pending_invoice_items_behavior: 'exclude',
            metadata: { [INVOICE_METADATA]: invoiceId },
          },
          { idempotencyKey },
        ),
      ),
    ),
  readLines: (id) =>
    answered(async () => {
      const positions = new Set<number>()
      for await (const { metadata } of stripe.invoices.listLineItems(id, { limit: PAGE }))
        if (metadata[LINE_METADATA] !== undefined) positions.add(Number(metadata[LINE_METADATA]))
      return positions
    }),
  addLines: (id, lines, idempotencyKey) =>
    answered(async () => {
      await stripe.invoices.addLines(
        id,
        {
          lines: lines.map(({ position, amountCents, description }) => ({
            amount: amountCents,
            description,
            metadata: { [LINE_METADATA]: String(position) },
          })),
        },
        { idempotencyKey },
      )
    }),
  deleteDraft: (id) =>
    answered(async () => {
      await stripe.invoices.del(id)
    }),
  finalizeInvoice: (id, idempotencyKey) =>
    answered(async () =>
      invoiceOf(await stripe.invoices.finalizeInvoice(id, { auto_advance: true }, { idempotencyKey })),
    ),
})

const invoicesOf = (stripe: Stripe): Pick<PaymentProcessor, 'findInvoice' | 'readInvoice' | 'listInvoices'> => ({
  findInvoice: (customer, invoiceId) =>
    answered(async () => {
      for await (const invoice of stripe.invoices.list({ customer, limit: PAGE }))
        if (invoice.metadata?.[INVOICE_METADATA] === invoiceId) return invoiceOf(invoice)
      return undefined
    }),
  readInvoice: (id) =>
    answered(async () => {
      const invoice = await orNone(stripe.invoices.retrieve(id, { expand: [PAYMENTS] }))
      return invoice && invoiceOf(invoice)
    }),
  async *listInvoices(since) {
    const created = { gte: Math.floor(since.getTime() / 1_000) }
    let after: string | undefined
    do {
      const { data, has_more } = await answered(() =>
        stripe.invoices.list({ created, limit: PAGE, ...defined({ starting_after: after }) }),
      )
      yield* data.map(invoiceOf)
      after = has_more ? data.at(-1)?.id : undefined
    } while (after !== undefined)
  },
})

const idOf = (reference: string | { readonly id: string } | null | undefined): string | undefined =>
  typeof reference === 'string' ? reference : reference?.id

const methodOf = ({ id, type, card }: Stripe.PaymentMethod): PaymentMethod => ({
  id,
  type,
  brand: card?.brand ?? '',
  last4: card?.last4 ?? '',
  expiresMonth: card?.exp_month ?? 0,
  expiresYear: card?.exp_year ?? 0,
})

const STATUSES: readonly ProcessorInvoice['status'][] = ['draft', 'open', 'paid', 'uncollectible', 'void']

function invoiceOf(invoice: Stripe.Invoice): ProcessorInvoice {
  const status = STATUSES.find((each) => each === invoice.status)
  if (status === undefined) throw new Error(`an invoice of the payment processor is ${String(invoice.status)}`)
  const intents = (invoice.payments?.data ?? []).flatMap(({ payment: { payment_intent: intent } }) =>
    typeof intent === 'object' && intent !== null ? [String(intent.status)] : [],
  )
  return {
    id: invoice.id,
    invoiceId: invoice.metadata?.[INVOICE_METADATA],
    status,
    hasFailedCharge: invoice.attempted && !intents.some((intent) => UNDER_WAY.includes(intent)),
    totalCents: invoice.total,
    currency: invoice.currency,
    hostedUrl: invoice.hosted_invoice_url ?? undefined,
  }
}

async function orNone<T>(request: Promise<T>): Promise<T | undefined> {
  try {
    return await request
  } catch (error) {
    if (error instanceof Stripe.errors.StripeError && error.statusCode === NOT_FOUND) return undefined
    throw error
  }
}

/** Converts errors of requests that may be sent again to Unavailable. */
async function answered<T>(request: () => Promise<T>): Promise<T> {
  try {
    return await request()
  } catch (error) {
    if (!(error instanceof Stripe.errors.StripeError)) throw error
    const { statusCode, code } = error
    const mayRepeat =
      statusCode === undefined || statusCode === CONFLICT || error instanceof Stripe.errors.StripeRateLimitError
    throw mayRepeat ? new Unavailable('the payment processor', error) : new ProcessorRefusal(statusCode, code, error)
  }
}

/** The object of an event: most objects belong to a customer. */
const EventObject = z.object({
  id: z.string().optional(),
  object: z.string(),
  customer: z.union([z.string(), z.object({ id: z.string() })]).nullish(),
})
const SIGNATURE_TOLERANCE_SECONDS = 300

/** Parses the event of a signed message. Throws 400 unless the processor signed exactly these bytes within the last
 *  five minutes. */
export function readEvent(body: Uint8Array, signature: string | undefined, secret: string, now: Date): PaymentEvent {
  let event: Stripe.Event
  try {
    const stripe = Stripe.webhooks
    event = stripe.constructEvent(body, signature ?? '', secret, SIGNATURE_TOLERANCE_SECONDS, undefined, now.getTime())
  } catch {
    throw badRequest('The event is not signed by the payment processor, or its signature is too old.')
  }
  const { data: object } = EventObject.safeParse(event.data.object)
  const customerId = idOf(object?.object === 'customer' ? object.id : object?.customer)
  return {
    id: event.id,
    type: event.type,
    ...(object?.object === 'invoice' && object.id !== undefined ? { invoiceId: object.id } : {}),
    ...defined({ customerId }),
  }
}
