/** The progress of metering and invoices, for the metrics that alerts watch. */
import type { PaymentProcessor } from '../../../integrations/payments/processor.ts'
import type { Parts } from '../../kit/parts.ts'

export interface BillingProgress {
  /** How long ago the last metered hour ended. */
  readonly meteringLagSeconds?: number
  readonly invoicesWaiting?: number
  /** Waiting invoices of which an attempt has failed. */
  readonly invoicesFailed?: number
  /** Invoices that the payment processor does not charge yet. */
  readonly invoicesUnsent?: number
  /** Unsent invoices of which an attempt has failed. */
  readonly invoicesUnsentFailed?: number
  /** Events of the processor that are not processed yet. */
  readonly paymentEventsWaiting?: number
  /** Differences that the last comparison of ledger and processor found. */
  readonly paymentDifferences?: number
}

/** The parts of everything that uses the payment processor. */
export type PaymentParts = Pick<Parts, 'clock' | 'db' | 'log' | 'random'> & { readonly processor: PaymentProcessor }

export interface BillingRun extends Parts {
  /** Absent where no payment processor is configured: invoices stay unbilled then. */
  readonly processor?: PaymentProcessor
  /** Called after each round. */
  readonly onBilled?: (progress: BillingProgress) => void
}
