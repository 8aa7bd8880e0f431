/** The product's interface to the payment processor: customers, cards, invoices, events. It knows neither accounts nor
 *  tables; `stripe.ts` implements it. */

/** A refusal that the same request would get again. A request with another idempotency key may succeed. */
export class ProcessorRefusal extends Error {
  /** HTTP status of the answer. */
  readonly status: number
  readonly code: string | undefined
  constructor(status: number, code: string | undefined, cause: unknown) {
    super(`the payment processor refused with ${status}${code === undefined ? '' : ` (${code})`}`, { cause })
    this.name = 'ProcessorRefusal'
    this.status = status
    this.code = code
  }
}

/** Metadata with the id of our invoice. */
export const INVOICE_METADATA = 'invoice_id'
/** Metadata with the position of a line in our invoice. */
export const LINE_METADATA = 'position'
/** Metadata with the account of a customer. */
export const ACCOUNT_METADATA = 'account_id'

export interface PaymentMethod {
  readonly id: string
  readonly type: string
  /** Brand of a card; empty for other types. */
  readonly brand: string
  readonly last4: string
  /** 0 for types that do not expire. */
  readonly expiresMonth: number
  readonly expiresYear: number
}

export interface CustomerMethods {
  readonly methods: readonly PaymentMethod[]
  /** The method for charging invoices. */
  readonly defaultId: string | undefined
}

/** The method for charging invoices, and the end of its last month (UTC); null if it does not expire. */
export function defaultOf({
  methods,
  defaultId,
}: CustomerMethods): { readonly id: string; readonly expiresAt: Date | null } | undefined {
  const method = methods.find(({ id }) => id === defaultId)
  if (method === undefined) return undefined
  const { id, expiresMonth, expiresYear } = method
  return { id, expiresAt: expiresYear === 0 ? null : new Date(Date.UTC(expiresYear, expiresMonth)) }
}

export interface ProcessorInvoice {
  readonly id: string
  /** Id of our invoice; undefined if the platform did not create it. */
  readonly invoiceId: string | undefined
  readonly status: 'draft' | 'open' | 'paid' | 'uncollectible' | 'void'
  /** A charge was tried, and has neither succeeded nor is in progress. Known only for a single invoice, not in lists.
   */
  readonly hasFailedCharge: boolean
  readonly totalCents: number
  readonly currency: string
  readonly hostedUrl: string | undefined
}

export interface ProcessorLine {
  /** Position in our invoice. */
  readonly position: number
  readonly amountCents: number
  readonly description: string
}

/** The object of an event; its state is read again from the processor. */
export interface PaymentEvent {
  readonly id: string
  readonly type: string
  readonly invoiceId?: string
  readonly customerId?: string
}

/** Every call throws Unavailable when the processor does not answer or is overloaded, so that the same request may be
 *  sent again, and ProcessorRefusal for every other refusal. */
export interface PaymentProcessor {
  createCustomer(payer: {
    readonly accountId: string
    readonly name: string
    readonly email: string | undefined
  }): Promise<string>
  /** Address of a page that saves a payment method without a charge. */
  createSetupSession(customerId: string, returnUrl: string, currency: string): Promise<string>
  readMethods(customerId: string): Promise<CustomerMethods>
  setDefaultMethod(customerId: string, methodId: string): Promise<void>
  /** Returns false when the customer has no such method. */
  removeMethod(customerId: string, methodId: string): Promise<boolean>
  /** The customer's invoice that was created from ours. */
  findInvoice(customerId: string, invoiceId: string): Promise<ProcessorInvoice | undefined>
  createInvoice(
    invoice: {
      readonly customerId: string
      readonly invoiceId: string
      readonly currency: string
      readonly description: string
    },
    key: string,
  ): Promise<ProcessorInvoice>
  /** Positions of its lines. */
  readLines(id: string): Promise<ReadonlySet<number>>
  /** At most LINES_MAXIMUM lines. */
  addLines(id: string, lines: readonly ProcessorLine[], key: string): Promise<void>
  /** Deletes an incorrect draft. */
  deleteDraft(id: string): Promise<void>
  /** After this the processor charges it automatically. */
  finalizeInvoice(id: string, key: string): Promise<ProcessorInvoice>
  /** Undefined when there is none. */
  readInvoice(id: string): Promise<ProcessorInvoice | undefined>
  /** Invoices created since then, newest first. */
  listInvoices(since: Date): AsyncIterable<ProcessorInvoice>
}

/** Limit of one call. */
export const LINES_MAXIMUM = 200
