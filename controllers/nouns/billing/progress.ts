/** How far metering and invoices are, for the numbers that alerts watch. */
import type { PaymentProcessor } from '../../../integrations/payments/processor.ts'
import type { Parts } from '../../kit/parts.ts'

export interface BillingProgress {
  /** How long ago the hours ended up to which everything is metered. */
  readonly meteringLagSeconds?: number
  readonly invoicesWaiting?: number
  /** Of those that wait: of which an attempt has failed. */
  readonly invoicesFailed?: number
  /** Invoices that the payment processor does not charge yet. */
  readonly invoicesUnsent?: number
  /** Of those: of which an attempt has failed. */
  readonly invoicesUnsentFailed?: number
  /** Events of the processor that are not used yet. */
  readonly paymentEventsWaiting?: number
  /** What the last comparison of ledger and processor found. */
  readonly paymentDifferences?: number
}

/** Of what speaks to the payment processor. */
export type PaymentParts = Pick<Parts, 'clock' | 'db' | 'log' | 'random'> & { readonly processor: PaymentProcessor }

export interface BillingRun extends Parts {
  /** Absent where no payment processor is configured: invoices stay unbilled then. */
  readonly processor?: PaymentProcessor
  /** Told after each round. */
  readonly onBilled?: (progress: BillingProgress) => void
}
