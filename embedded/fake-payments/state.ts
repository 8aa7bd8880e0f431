/** The state of the fake payment processor: plain data that can be written to a file. */

export interface FakeCustomer {
  readonly id: string
  readonly created: number
  readonly metadata: Readonly<Record<string, string>>
  email: string | null
  name: string | null
  defaultMethod: string | null
}

export interface FakeMethod {
  readonly id: string
  readonly brand: string
  readonly last4: string
  readonly expMonth: number
  readonly expYear: number
  /** Whether charges to it succeed. */
  isGood: boolean
  customer: string | null
}

export interface FakeSession {
  readonly id: string
  readonly customer: string
  readonly successUrl: string
  isComplete: boolean
}

export interface FakeLine {
  readonly id: string
  readonly amount: number
  readonly description: string
  readonly metadata: Readonly<Record<string, string>>
}

export interface FakeInvoice {
  readonly id: string
  readonly customer: string
  readonly created: number
  readonly currency: string
  readonly metadata: Readonly<Record<string, string>>
  readonly lines: FakeLine[]
  status: 'draft' | 'open' | 'paid' | 'uncollectible' | 'void'
  attempts: number
  /** Charged automatically at the next opportunity. */
  isDue: boolean
}

export interface FakeCharge {
  readonly id: string
  readonly invoice: string
  readonly amount: number
}

export interface FakeEvent {
  readonly id: string
  readonly type: string
  readonly created: number
  readonly object: object
}

/** An answer that is repeated for the same key. */
export interface KeptAnswer {
  readonly request: string
  readonly status: number
  readonly body: object
  readonly at: number
}

export interface FakeState {
  customers: FakeCustomer[]
  methods: FakeMethod[]
  sessions: FakeSession[]
  invoices: FakeInvoice[]
  /** Charges that succeeded. */
  charges: FakeCharge[]
  /** Not delivered yet, oldest first. */
  events: FakeEvent[]
  answers: Record<string, KeptAnswer>
  /** The last id. */
  counter: number
}

export const emptyState = (): FakeState => ({
  customers: [],
  methods: [],
  sessions: [],
  invoices: [],
  charges: [],
  events: [],
  answers: {},
  counter: 0,
})
