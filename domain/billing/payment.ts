/** What the state of an invoice at the payment processor means, and when an unpaid one suspends its account. */

export type PaymentStatus = 'unbilled' | 'open' | 'paid' | 'overdue'

export interface ProcessorState {
  readonly status: 'draft' | 'open' | 'paid' | 'uncollectible' | 'void'
  /** A charge was tried, and neither succeeded nor is under way. */
  readonly hasFailedCharge: boolean
}

/** A draft is nothing yet, and what was voided there was taken back. */
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
