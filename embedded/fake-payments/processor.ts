/** A FAKE payment processor, for tests and for `npm start -- --fake-payments`. It implements the part of Stripe's API
 *  that the product uses, stores its data, repeats answers to the same idempotency key, and sends signed events. No
 *  money moves. */
import { createHash, createHmac } from 'node:crypto'
import type { Clock } from '../../kit/sys/clock.ts'
import { type Form, formOf, parseForm, fieldText, textsOf } from './form.ts'
import {
  emptyState,
  type FakeCustomer,
  type FakeEvent,
  type FakeInvoice,
  type FakeMethod,
  type FakeState,
} from './state.ts'

export interface FakeRequest {
  readonly method: string
  /** Includes the query. */
  readonly path: string
  readonly idempotencyKey?: string | undefined
  readonly authorization?: string | undefined
  readonly body: string
}
export interface FakeAnswer {
  readonly status: number
  readonly body: object
}

export interface FakeOptions {
  readonly clock: Clock
  readonly apiKey: string
  /** URL of its pages. */
  readonly url: string
  readonly state?: FakeState
}

const KEYS_KEPT_MILLISECONDS = 86_400_000
const PAGE_MAXIMUM = 100
const MINIMUM_CENTS = 50

/** A refusal of its API. */
class Refused extends Error {
  readonly answer: FakeAnswer
  constructor(status: number, code: string, message: string) {
    super(message)
    this.answer = refusal(status, code, message)
  }
}

const refusal = (status: number, code: string, message: string): FakeAnswer => ({
  status,
  body: { error: { type: code === 'idempotency_error' ? code : 'invalid_request_error', code, message } },
})
const missing = (what: string) => new Refused(404, 'resource_missing', `No such ${what}`)

export class FakePayments {
  readonly state: FakeState
  readonly #options: FakeOptions

  constructor(options: FakeOptions) {
    this.#options = options
    this.state = options.state ?? emptyState()
  }

  #now(): number {
    return Math.floor(this.#options.clock.now().getTime() / 1_000)
  }

  #id(prefix: string): string {
    this.state.counter += 1
    return `${prefix}_fake_${String(this.state.counter).padStart(6, '0')}`
  }

  /** Answers a request of its API. */
  handle(request: FakeRequest): FakeAnswer {
    if (request.authorization !== `Bearer ${this.#options.apiKey}`)
      return refusal(401, 'api_key_invalid', 'Invalid API key')
    const { idempotencyKey: key } = request
    if (request.method !== 'POST' || key === undefined) return this.#answer(request)
    const now = this.#options.clock.now().getTime()
    for (const [name, { at }] of Object.entries(this.state.answers))
      if (now - at > KEYS_KEPT_MILLISECONDS) delete this.state.answers[name]
    const digest = createHash('sha256').update(`${request.path}\n${request.body}`).digest('hex')
    const earlierAnswer = this.state.answers[key]
    if (earlierAnswer !== undefined)
      return earlierAnswer.request === digest
        ? earlierAnswer
        : refusal(400, 'idempotency_error', 'Keys for idempotent requests can only be used with the same parameters')
    const answer = this.#answer(request)
    this.keepAnswer(request, answer)
    return answer
  }

  /** Repeats this answer for the same request with the same key. */
  keepAnswer({ idempotencyKey: key, path, body }: FakeRequest, answer: FakeAnswer): void {
    if (key === undefined) return
    const request = createHash('sha256').update(`${path}\n${body}`).digest('hex')
    this.state.answers[key] = { ...answer, request, at: this.#options.clock.now().getTime() }
  }

  #answer({ method, path, body }: FakeRequest): FakeAnswer {
    const url = new URL(path, 'http://fake')
    const [, , noun = '', id = '', verb = ''] = url.pathname.split('/')
    const form = parseForm(method === 'GET' ? url.search.slice(1) : body)
    try {
      const found = this.#route(
        `${method} ${noun}${id === '' ? '' : '/{id}'}${verb === '' ? '' : `/${verb}`}`,
        id,
        form,
      )
      return { status: 200, body: found }
    } catch (error) {
      if (error instanceof Refused) return error.answer
      throw error
    }
  }

  #route(route: string, id: string, form: Form): object {
    switch (route) {
      case 'POST customers':
        return this.#createCustomer(form)
      case 'GET customers/{id}':
        return customerView(this.customer(id))
      case 'POST customers/{id}':
        return this.#updateCustomer(this.customer(id), form)
      case 'GET customers/{id}/payment_methods':
        return listOf(this.#methodsOf(this.customer(id).id).map(methodView), false)
      case 'GET payment_methods/{id}':
        return methodView(this.#method(id))
      case 'POST payment_methods/{id}/detach':
        return this.#detach(this.#method(id))
      case 'POST checkout/{id}':
        return this.#createSession(form)
      case 'POST invoices':
        return this.#createInvoice(form)
      case 'GET invoices':
        return this.#listInvoices(form)
      case 'GET invoices/{id}':
        return this.#invoiceView(this.invoice(id))
      case 'DELETE invoices/{id}':
        return this.#deleteInvoice(this.invoice(id))
      case 'GET invoices/{id}/lines':
        return this.#listLines(this.invoice(id), form)
      case 'POST invoices/{id}/add_lines':
        return this.#addLines(this.invoice(id), form)
      case 'POST invoices/{id}/finalize':
        return this.#finalize(this.invoice(id))
      default:
        throw new Refused(404, 'url_invalid', `The fake payment processor has no ${route}`)
    }
  }

  customer(id: string): FakeCustomer {
    const found = this.state.customers.find((each) => each.id === id)
    if (found === undefined) throw missing('customer')
    return found
  }

  invoice(id: string): FakeInvoice {
    const found = this.state.invoices.find((each) => each.id === id)
    if (found === undefined) throw missing('invoice')
    return found
  }

  #method(id: string): FakeMethod {
    const found = this.state.methods.find((each) => each.id === id)
    if (found === undefined) throw missing('payment_method')
    return found
  }

  /** The newest first. */
  #methodsOf = (customer: string): FakeMethod[] =>
    this.state.methods.filter((each) => each.customer === customer).toReversed()

  #tell(type: string, object: object): void {
    this.state.events.push({ id: this.#id('evt'), type, created: this.#now(), object })
  }

  #createCustomer(form: Form): object {
    const customer: FakeCustomer = {
      id: this.#id('cus'),
      created: this.#now(),
      metadata: textsOf(formOf(form, 'metadata')),
      email: fieldText(form, 'email') ?? null,
      name: fieldText(form, 'name') ?? null,
      defaultMethod: null,
    }
    this.state.customers.push(customer)
    return customerView(customer)
  }

  #updateCustomer(customer: FakeCustomer, form: Form): object {
    const method = fieldText(formOf(form, 'invoice_settings'), 'default_payment_method')
    if (method !== undefined) {
      if (this.#method(method).customer !== customer.id)
        throw new Refused(400, 'resource_missing', 'The payment method is not attached to the customer')
      customer.defaultMethod = method
    }
    this.#tell('customer.updated', customerView(customer))
    return customerView(customer)
  }

  #detach(method: FakeMethod): object {
    const customer = this.state.customers.find(({ id }) => id === method.customer)
    if (customer === undefined) throw new Refused(400, 'resource_missing', 'The payment method is not attached')
    method.customer = null
    if (customer.defaultMethod === method.id) customer.defaultMethod = null
    this.#tell('customer.updated', customerView(customer))
    return methodView(method)
  }

  #createSession(form: Form): object {
    if (fieldText(form, 'mode') !== 'setup' || fieldText(form, 'currency') === undefined)
      throw new Refused(
        400,
        'parameter_missing',
        'The fake payment processor makes setup sessions with a currency only',
      )
    const session = {
      id: this.#id('cs'),
      customer: this.customer(fieldText(form, 'customer') ?? '').id,
      successUrl: fieldText(form, 'success_url') ?? '',
      isComplete: false,
    }
    this.state.sessions.push(session)
    return { id: session.id, object: 'checkout.session', url: `${this.#options.url}/fake/setup/${session.id}` }
  }

  /** The action of a customer on the page of a session: saves a card that is good, or one whose charges fail. */
  completeSession(id: string, isGood: boolean): void {
    const session = this.state.sessions.find((each) => each.id === id)
    if (session === undefined || session.isComplete) throw missing('session')
    session.isComplete = true
    const expYear = this.#options.clock.now().getUTCFullYear() + 3
    const card = { brand: 'visa', last4: isGood ? '4242' : '0341', expMonth: 12, expYear, isGood }
    this.state.methods.push({ id: this.#id('pm'), customer: session.customer, ...card })
    const { customer } = session
    this.#tell('setup_intent.succeeded', { id: this.#id('seti'), object: 'setup_intent', customer })
    this.#tell('checkout.session.completed', { id, object: 'checkout.session', customer })
  }

  #createInvoice(form: Form): object {
    const invoice: FakeInvoice = {
      id: this.#id('in'),
      customer: this.customer(fieldText(form, 'customer') ?? '').id,
      created: this.#now(),
      currency: fieldText(form, 'currency') ?? 'eur',
      metadata: textsOf(formOf(form, 'metadata')),
      lines: [],
      status: 'draft',
      attempts: 0,
      isDue: false,
    }
    this.state.invoices.push(invoice)
    this.#tell('invoice.created', this.#invoiceView(invoice))
    return this.#invoiceView(invoice)
  }

  #listInvoices(form: Form): object {
    const since = Number(fieldText(formOf(form, 'created'), 'gte') ?? 0)
    const customer = fieldText(form, 'customer')
    const found = this.state.invoices
      .filter((each) => each.created >= since && (customer === undefined || each.customer === customer))
      .toReversed()
    return pageOf(found, form, (each) => this.#invoiceView(each))
  }

  #listLines(invoice: FakeInvoice, form: Form): object {
    return pageOf(invoice.lines, form, lineView)
  }

  #deleteInvoice(invoice: FakeInvoice): object {
    requireDraft(invoice)
    this.state.invoices = this.state.invoices.filter((each) => each !== invoice)
    return { id: invoice.id, object: 'invoice', deleted: true }
  }

  #addLines(invoice: FakeInvoice, form: Form): object {
    requireDraft(invoice)
    for (const line of Object.values(formOf(form, 'lines')))
      if (typeof line === 'object')
        invoice.lines.push({
          id: this.#id('il'),
          amount: Number(fieldText(line, 'amount')),
          description: fieldText(line, 'description') ?? '',
          metadata: textsOf(formOf(line, 'metadata')),
        })
    return this.#invoiceView(invoice)
  }

  #finalize(invoice: FakeInvoice): object {
    requireDraft(invoice)
    invoice.status = totalOf(invoice) < MINIMUM_CENTS ? 'paid' : 'open'
    invoice.isDue = invoice.status === 'open'
    this.#tell('invoice.finalized', this.#invoiceView(invoice))
    if (invoice.status === 'paid') this.#tell('invoice.paid', this.#invoiceView(invoice))
    return this.#invoiceView(invoice)
  }

  /** Charges every due invoice to the default method of its customer. */
  chargeDue(): void {
    for (const invoice of this.state.invoices.filter(({ isDue }) => isDue)) {
      const { defaultMethod } = this.customer(invoice.customer)
      this.#charge(invoice, this.state.methods.find(({ id }) => id === defaultMethod)?.isGood === true)
    }
  }

  /** The action of a customer on the page of an invoice: pays with a good card, or with a bad one. */
  pay(id: string, isGood: boolean): void {
    const invoice = this.invoice(id)
    if (invoice.status !== 'open') throw new Refused(400, 'invoice_not_open', 'The invoice is not open')
    this.#charge(invoice, isGood)
  }

  #charge(invoice: FakeInvoice, isGood: boolean): void {
    invoice.isDue = false
    invoice.attempts += 1
    if (isGood) {
      this.state.charges.push({ id: this.#id('ch'), invoice: invoice.id, amount: totalOf(invoice) })
      invoice.status = 'paid'
    }
    this.#tell(isGood ? 'invoice.paid' : 'invoice.payment_failed', this.#invoiceView(invoice))
  }

  #invoiceView(invoice: FakeInvoice): object {
    const { id, status, attempts, metadata, currency, created, customer } = invoice
    const intent = status === 'paid' ? 'succeeded' : 'requires_payment_method'
    const total = totalOf(invoice)
    return {
      id,
      object: 'invoice',
      customer,
      created,
      currency,
      metadata,
      status,
      total,
      amount_due: total,
      attempted: attempts > 0,
      attempt_count: attempts,
      hosted_invoice_url: status === 'draft' ? null : `${this.#options.url}/fake/invoices/${id}`,
      payments: {
        object: 'list',
        has_more: false,
        data:
          attempts === 0
            ? []
            : [{ object: 'invoice_payment', payment: { type: 'payment_intent', payment_intent: { status: intent } } }],
      },
    }
  }
}

function requireDraft({ status }: FakeInvoice): void {
  if (status !== 'draft') throw new Refused(400, 'invoice_not_editable', 'The invoice is no longer a draft')
}

export const totalOf = ({ lines }: FakeInvoice): number => lines.reduce((sum, { amount }) => sum + amount, 0)

const listOf = (data: readonly object[], hasMore: boolean): object => ({ object: 'list', data, has_more: hasMore })

function pageOf<Item extends { readonly id: string }>(
  items: readonly Item[],
  form: Form,
  view: (item: Item) => object,
): object {
  const after = fieldText(form, 'starting_after')
  const start = after === undefined ? 0 : items.findIndex(({ id }) => id === after) + 1
  const end = start + Math.min(Number(fieldText(form, 'limit') ?? 10), PAGE_MAXIMUM)
  return listOf(items.slice(start, end).map(view), end < items.length)
}

const customerView = ({ id, metadata, email, name, defaultMethod }: FakeCustomer): object => ({
  id,
  object: 'customer',
  email,
  name,
  metadata,
  invoice_settings: { default_payment_method: defaultMethod },
})

const methodView = ({ id, brand, last4, expMonth, expYear, customer }: FakeMethod): object => ({
  id,
  object: 'payment_method',
  type: 'card',
  customer,
  card: { brand, last4, exp_month: expMonth, exp_year: expYear },
})

const lineView = ({ id, amount, description, metadata }: FakeInvoice['lines'][number]): object => ({
  id,
  object: 'line_item',
  amount,
  description,
  metadata,
})

/** Body and signature header of the event. */
export function signedEvent(
  { id, type, created, object }: FakeEvent,
  secret: string,
  now: Date,
): { readonly body: string; readonly signature: string } {
  const body = JSON.stringify({ id, object: 'event', type, created, data: { object } })
  const at = Math.floor(now.getTime() / 1_000)
  return { body, signature: `t=${at},v1=${createHmac('sha256', secret).update(`${at}.${body}`).digest('hex')}` }
}
