/** What staff see of invoices and payments that failed, and have tried again. Served on the operator listener only. */
import { z } from 'zod'
import { completeListOf, DateTime, Uuid } from '../kit/shapes.ts'
import { routesUnder } from '../kit/verbs.ts'

const Period = z
  .string()
  .regex(/^\d{4}-(0[1-9]|1[0-2])$/, 'must be a month, as in 2026-01')
  .describe('The calendar month (UTC) as YYYY-MM.')
const Count = z.int().min(0)
const PeriodParams = z.strictObject({ period: Period })

export const InvoiceRun = z
  .strictObject({
    period: Period,
    started_at: DateTime.describe('When the month was closed.'),
    finished_at: DateTime.nullable().describe('When the last invoice of the month was made; null while one waits.'),
    account_count: Count.describe('Accounts that get an invoice of the month.'),
    waiting_count: Count.describe('Those of them that have none yet.'),
    failed_count: Count.describe('Those that wait and of which an attempt has failed.'),
  })
  .meta({ id: 'InvoiceRun' })
const FAILED = {
  account_id: Uuid,
  attempts: Count.describe('How many have failed.'),
  next_attempt_at: DateTime.describe('When it is tried again by itself.'),
  error: z.string().describe('Of the last attempt.'),
}
const FailedInvoice = z.strictObject(FAILED).meta({ id: 'FailedInvoice' })
const FailedPayment = z
  .strictObject({ invoice_id: Uuid.describe('Id of the invoice.'), period: Period, ...FAILED })
  .meta({ id: 'FailedPayment', description: 'An invoice that could not be handed to the payment processor yet.' })
const PaymentDifference = z
  .strictObject({
    subject: z.string().describe('Id of the invoice or credit, or of an invoice at the payment processor.'),
    kind: z
      .enum(['amount', 'status', 'missing_at_processor', 'missing_in_ledger', 'charged_twice', 'lines', 'credits'])
      .describe('How they differ.'),
    detail: z.string().describe('What differs.'),
    found_at: DateTime.describe('When it was found.'),
  })
  .meta({ id: 'PaymentDifference' })
const Retried = z.strictObject({ retried_count: Count.describe('How many are tried again now.') })

const staff = routesUnder({ path: '/v1/admin', area: 'Invoices and payments', staff: 'finance' })

export const listInvoiceRuns = staff.get('list_invoice_runs', '/invoice-runs', {
  summary: 'List how far the invoices of each month are',
  description: 'The newest 24 months.',
  answers: { 200: completeListOf(InvoiceRun) },
})
export const listFailedInvoices = staff.get('list_failed_invoices', '/invoice-runs/{period}/failures', {
  summary: 'List accounts whose invoice could not be made',
  description: 'The first 100 of them. They are tried again by themselves, at least every hour.',
  params: PeriodParams,
  answers: { 200: completeListOf(FailedInvoice) },
})
export const retryFailedInvoices = staff.post('retry_failed_invoices', '/invoice-runs/{period}/retry', {
  summary: 'Try the failed invoices of a month again now',
  audit: 'invoice_run.retry',
  params: PeriodParams,
  answers: { 200: Retried },
  refuses: [404],
})
export const listFailedPayments = staff.get('list_failed_payments', '/payments/failures', {
  summary: 'List invoices that the payment processor did not take',
  description: 'The first 100 of them. They are tried again by themselves, at least every hour.',
  answers: { 200: completeListOf(FailedPayment) },
})
export const retryFailedPayments = staff.post('retry_failed_payments', '/payments/retry', {
  summary: 'Hand failed invoices to the payment processor again now',
  audit: 'payment.retry',
  answers: { 200: Retried },
  refuses: [],
})
export const listPaymentDifferences = staff.get('list_payment_differences', '/payments/differences', {
  summary: 'List where ledger and payment processor differ',
  description: 'What the comparison of last night found; it changes nothing.',
  answers: {
    200: completeListOf(PaymentDifference).extend({
      compared_at: DateTime.nullable().describe('When they were compared; null before the first time.'),
    }),
  },
})

export const INVOICE_RUN_ROUTES = [
  listInvoiceRuns,
  listFailedInvoices,
  retryFailedInvoices,
  listFailedPayments,
  retryFailedPayments,
  listPaymentDifferences,
] as const
