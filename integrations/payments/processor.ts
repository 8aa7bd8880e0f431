/** The payment processor as the product sees it: customers, cards, invoices, events. It knows neither accounts nor
 *  tables; `stripe.ts` speaks to it. */

/** It answered, and will answer the same to the same request: one with another idempotency key may fare better. */
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

/** Names the invoice of ours that one at the processor was made of. */
export const INVOICE_METADATA = 'invoice_id'
/** Names the position of a line in our invoice. */
export const LINE_METADATA = 'position'
/** Names the account that a customer at the processor stands for. */
export const ACCOUNT_METADATA = 'account_id'

export interface PaymentMethod {
  readonly id: string
  readonly type: string
  /** Of cards; empty for others. */
  readonly brand: string
  readonly last4: string
  /** 0 where the type does not expire. */
  readonly expiresMonth: number
  readonly expiresYear: number
}

export interface CustomerMethods {
  readonly methods: readonly PaymentMethod[]
  /** What invoices are charged to. */
  readonly defaultId: string | undefined
}

/** The method that invoices are charged to, and the end of its last month (UTC); null where it does not expire. */
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
  /** Of ours; undefined for what the platform did not make. */
  readonly invoiceId: string | undefined
  readonly status: 'draft' | 'open' | 'paid' | 'uncollectible' | 'void'
  /** A charge was tried, and neither succeeded nor is under way. Known of a single invoice only, not of lists. */
  readonly hasFailedCharge: boolean
  readonly totalCents: number
  readonly currency: string
  readonly hostedUrl: string | undefined
}

export interface ProcessorLine {
  /** In our invoice. */
  readonly position: number
  readonly amountCents: number
  readonly description: string
}

/** What an event is about; what happened is read again from the processor. */
export interface PaymentEvent {
  readonly id: string
  readonly type: string
  readonly invoiceId?: string
  readonly customerId?: string
}

/** Every call throws Unavailable when the processor does not answer, is busy or has too much to do, so that the same
 *  request may be sent again; and ProcessorRefusal for everything else that it says no to. */
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
  /** Answers false when the customer has no such method. */
  removeMethod(customerId: string, methodId: string): Promise<boolean>
  /** The invoice of the customer that was made of ours. */
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
  /** Positions of the lines that it has. */
  readLines(id: string): Promise<ReadonlySet<number>>
  /** At most LINES_MAXIMUM. */
  addLines(id: string, lines: readonly ProcessorLine[], key: string): Promise<void>
  /** Takes a draft away that is not what it should be. */
  deleteDraft(id: string): Promise<void>
  /** From then on it is charged by itself. */
  finalizeInvoice(id: string, key: string): Promise<ProcessorInvoice>
  /** Undefined when there is none. */
  readInvoice(id: string): Promise<ProcessorInvoice | undefined>
  /** Those made since, newest first. */
  listInvoices(since: Date): AsyncIterable<ProcessorInvoice>
}

/** Of one call. */
export const LINES_MAXIMUM = 200
