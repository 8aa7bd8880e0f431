/** The cost of resources: prices, metered hours, and what is computed from them. */
export {
  type ResourceKey,
  type SeenResource,
  findRecorded,
  listOpenLives,
  meterBatch,
  readMetering,
  recordLook,
  recordMetered,
  recordSeen,
  recordVanished,
} from './metering.ts'
export { listPrices, recordCurrentPrice, recordDatedPrices } from './prices.ts'
export { firstUsageAt, readMonthUsage } from './usage.ts'
export {
  type Invoice,
  countWaiting,
  finishInvoiceRun,
  invoiceNext,
  listFailedInvoices,
  listInvoiceRuns,
  listInvoices,
  listMonthsToInvoice,
  openInvoiceRun,
  retryInvoices,
} from './invoices.ts'
export {
  type BilledChange,
  type InvoicePush,
  claimPush,
  countPushes,
  listFailedPushes,
  readInvoiceLines,
  recordBilled,
  recordKey,
  recordProcessorInvoice,
  recordPushFailure,
  retryPushes,
} from './pushes.ts'
export {
  type StoredEvent,
  claimPaymentEvent,
  countPaymentEvents,
  forgetPaymentEvents,
  recordEventFailure,
  recordEventProcessed,
  storePaymentEvent,
} from './payment-events.ts'
export {
  adjustSuspension,
  findAccountOfCustomer,
  findPaymentCustomer,
  listSuspensionsDue,
  readPayer,
  recordDefaultMethod,
  recordPaymentCustomer,
} from './payment-customers.ts'
export {
  type PaymentDifference,
  hasInvoice,
  isComparisonDue,
  listBilledInvoices,
  listLedgerDifferences,
  readComparison,
  recordComparison,
} from './comparison.ts'
export { findQueued, listEndingCredits, listEndingMethods } from './reminders.ts'
export { pruneHours } from './retention.ts'
