/** What staff see of failed invoices and payments, and how they retry them. Served on the operator listener only. */
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
    started_at: DateTime.describe('Time when the month was closed.'),
    finished_at: DateTime.nullable().describe(
      'Time when the last invoice of the month was created; null while one is waiting.',
    ),
    account_count: Count.describe('Number of accounts with an invoice for the month.'),
    waiting_count: Count.describe('Number of those accounts that have no invoice yet.'),
    failed_count: Count.describe('Number of waiting accounts with a failed attempt.'),
  })
  .meta({ id: 'InvoiceRun' })
const FAILED = {
  account_id: Uuid,
  attempts: Count.describe('Number of failed attempts.'),
  next_attempt_at: DateTime.describe('Time of the next automatic attempt.'),
  error: z.string().describe('Error of the last attempt.'),
}
const FailedInvoice = z.strictObject(FAILED).meta({ id: 'FailedInvoice' })
const FailedPayment = z
  .strictObject({ invoice_id: Uuid.describe('Id of the invoice.'), period: Period, ...FAILED })
  .meta({ id: 'FailedPayment', description: 'An invoice that could not be sent to the payment processor yet.' })
const PaymentDifference = z
  .strictObject({
    subject: z.string().describe('Id of the invoice or credit, or of an invoice at the payment processor.'),
    kind: z
      .enum(['amount', 'status', 'missing_at_processor', 'missing_in_ledger', 'charged_twice', 'lines', 'credits'])
      .describe('Kind of the difference.'),
    detail: z.string().describe('What differs.'),
    found_at: DateTime.describe('Time when it was found.'),
  })
  .meta({ id: 'PaymentDifference' })
const Retried = z.strictObject({ retried_count: Count.describe('Number of items that are tried again now.') })

const staff = routesUnder({ path: '/v1/admin', staff: 'finance' })

export const listInvoiceRuns = staff.get('list_invoice_runs', '/invoice-runs', {
  summary: 'List the invoice progress of each month',
  description: 'The latest 24 months.',
  answers: { 200: completeListOf(InvoiceRun) },
})
export const listFailedInvoices = staff.get('list_failed_invoices', '/invoice-runs/{period}/failures', {
  summary: 'List accounts whose invoice could not be created',
  description: 'The first 100. The platform retries them automatically, at least hourly.',
  params: PeriodParams,
  answers: { 200: completeListOf(FailedInvoice) },
})
export const retryFailedInvoices = staff.post('retry_failed_invoices', '/invoice-runs/{period}/retry', {
  summary: 'Retry the failed invoices of a month now',
  audit: 'invoice_run.retry',
  params: PeriodParams,
  answers: { 200: Retried },
  refuses: [404],
})
export const listFailedPayments = staff.get('list_failed_payments', '/payments/failures', {
  summary: 'List invoices that the payment processor did not accept',
  description: 'The first 100. The platform retries them automatically, at least hourly.',
  answers: { 200: completeListOf(FailedPayment) },
})
export const retryFailedPayments = staff.post('retry_failed_payments', '/payments/retry', {
  summary: 'Resend failed invoices to the payment processor now',
  audit: 'payment.retry',
  answers: { 200: Retried },
  refuses: [],
})
export const listPaymentDifferences = staff.get('list_payment_differences', '/payments/differences', {
  summary: 'List differences between the ledger and the payment processor',
  description: "Result of last night's comparison, which changes nothing.",
  answers: {
    200: completeListOf(PaymentDifference).extend({
      compared_at: DateTime.nullable().describe('Time of the comparison; null before the first.'),
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
