/** The meaning of an invoice's state at the payment processor, and when an unpaid invoice suspends its account. */

export type PaymentStatus = 'unbilled' | 'open' | 'paid' | 'overdue'

export interface ProcessorState {
  readonly status: 'draft' | 'open' | 'paid' | 'uncollectible' | 'void'
  /** A charge was attempted, and neither succeeded nor is under way. */
  readonly hasFailedCharge: boolean
}

/** A draft does not count yet, and a voided invoice was cancelled. */
export const paymentStatusOf = ({ status, hasFailedCharge }: ProcessorState): PaymentStatus =>
  status === 'paid'
    ? 'paid'
    : status === 'uncollectible' || (status === 'open' && hasFailedCharge)
      ? 'overdue'
      : status === 'open'
        ? 'open'
        : 'unbilled'

/** How long after the first failed charge of an invoice its account is suspended. */
export const GRACE_DAYS = 14
