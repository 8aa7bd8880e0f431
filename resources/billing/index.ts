/** Usage and cost of an account: public shapes and routes. */
import { z } from 'zod'
import { type BillLine, sumOf } from '../../domain/billing/rules.ts'
import type { Month } from '../../domain/billing/transfer.ts'
import { DateTime, pageOf, PageQuery, Uuid } from '../kit/shapes.ts'
import { routesUnder } from '../kit/verbs.ts'

const Cents = z.int().min(0)
const Hours = z.int().min(0).describe('Metered clock hours (UTC).')
export const CURRENCY = 'eur'
const Period = z
  .string()
  .regex(/^\d{4}-(0[1-9]|1[0-2])$/, 'must be a month, as in 2026-01')
  .describe('The calendar month (UTC) as YYYY-MM.')

const BILLED = {
  resource_type: z.string().describe('Type of the resource: server, storage, public_ipv4, network_transfer and so on.'),
  resource_id: z.string().describe('Id of the resource; for traffic, the id of the server.'),
  name: z.string().describe('Most recent known name of the resource.'),
  plan: z.string().describe('Plan or tier; empty when the resource has none.'),
  hours: Hours,
}
const HourlyPrice = z
  .int()
  .min(0)
  .describe('Price per hour in thousandths of a cent; 0 for usage that is not billed by the hour.')

export const BillingLogEntry = z
  .strictObject({
    date: z.iso.date().describe('Day (UTC).'),
    ...BILLED,
    hourly_price_millicents: HourlyPrice,
    amount_cents: Cents.describe('Amount that the day added to the month, in cents.'),
  })
  .meta({ id: 'BillingLogEntry' })

export const UsageSummary = z
  .strictObject({
    currency: z.string().describe('ISO 4217 currency code in lower case.'),
    period_start: DateTime,
    period_end: DateTime,
    metered_through: DateTime.nullable().describe('All hours before this time are metered; null before the first.'),
    month_to_date_cents: Cents.describe('Cost of the month so far, in cents: the sum of the resources.'),
    estimated_month_cents: Cents.describe(
      'Estimated cost of the month in cents if all active resources stay as they are.',
    ),
    resources: z
      .array(
        z.strictObject({
          ...BILLED,
          amount_cents: Cents.describe('Cost so far, in cents.'),
          cap_cents: Cents.describe('Maximum cost per month; 0 for no maximum.'),
          hourly_price_millicents: HourlyPrice,
          is_active: z.boolean().describe('Whether the resource still incurs cost.'),
        }),
      )
      .describe('One line per resource, plan and price in the month.'),
    daily: z
      .array(
        z.strictObject({
          date: z.iso.date().describe('Day (UTC).'),
          amount_cents: Cents.describe('Cost of the day, in cents.'),
        }),
      )
      .describe('The last 90 days including today, oldest first.'),
    credit_balance_cents: Cents.describe(
      'Remaining amount of valid credits, in cents. The next invoice uses it first.',
    ),
    credit_next_expiry: DateTime.nullable().describe('Time when the next valid credit expires; null for never.'),
  })
  .meta({ id: 'UsageSummary' })

const billing = routesUnder({ path: '/v1', permission: 'billing.read' })

export const getUsageSummary = billing.get('get_usage_summary', '/usage/summary', {
  summary: 'Get the usage of the current month',
  description:
    'Cost of the current calendar month (UTC) so far. A resource costs every clock hour in which it existed; the ' +
    'current hour is counted when it ends.',
  answers: { 200: UsageSummary },
})
export const listBillingLog = billing.get('list_billing_log', '/usage/billing-log', {
  summary: 'List the daily cost of each resource',
  description:
    'One line per resource and day, newest day first; two when plan or price changed during the day. The lines of ' +
    'a month add up to its invoice.',
  query: PageQuery,
  answers: { 200: pageOf(BillingLogEntry) },
})

export const Invoice = z
  .strictObject({
    id: Uuid,
    period: Period,
    period_start: DateTime,
    period_end: DateTime,
    currency: z.string().describe('ISO 4217 currency code in lower case.'),
    total_cents: Cents.describe('Cost of the month in cents, before credits.'),
    credit_applied_cents: Cents.describe('Part that credits paid, in cents.'),
    amount_due_cents: Cents.describe('Part that remains to be paid, in cents.'),
    created_at: DateTime,
    lines: z
      .array(
        z
          .strictObject({
            kind: z.enum(['usage', 'credit']).describe('usage, or credit for an amount that a credit paid (negative).'),
            ...BILLED,
            amount_cents: z.int().describe('In cents; negative for credits.'),
            cap_cents: Cents.describe('Maximum cost per month; 0 for no maximum.'),
          })
          .meta({ id: 'InvoiceLine' }),
      )
      .describe('Usage lines, then credit lines.'),
    payment_status: z
      .enum(['unbilled', 'open', 'paid', 'overdue'])
      .describe('unbilled while the total is zero or the payment processor does not have the invoice.'),
    hosted_invoice_url: z
      .string()
      .nullable()
      .describe('Page of the payment processor to view and pay the invoice; null when there is none.'),
  })
  .meta({ id: 'Invoice' })

export const listInvoices = billing.get('list_invoices', '/invoices', {
  summary: 'List invoices',
  description: 'One per calendar month (UTC) with usage, newest month first.',
  // the addresses of invoices at the payment processor
  secretFields: ['items'],
  query: PageQuery,
  answers: { 200: pageOf(Invoice) },
})

export const BILLING_ROUTES = [getUsageSummary, listBillingLog, listInvoices] as const

const billed = (line: BillLine) => ({
  resource_type: line.resourceType,
  resource_id: line.resourceId,
  name: line.name,
  plan: line.plan,
})

/** `lines` are of the month; `daily` and the credits are of the account. */
export const toUsageSummary = (
  { start, end }: Month,
  lines: readonly BillLine[],
  rest: {
    readonly meteredThrough: Date | null
    readonly daily: readonly { readonly date: string; readonly amountCents: number }[]
    readonly creditBalanceCents: number
    readonly creditNextExpiry: Date | undefined
  },
): z.infer<typeof UsageSummary> => ({
  currency: CURRENCY,
  period_start: start.toISOString(),
  period_end: end.toISOString(),
  metered_through: rest.meteredThrough?.toISOString() ?? null,
  month_to_date_cents: sumOf(lines, ({ amountCents }) => amountCents),
  estimated_month_cents: sumOf(lines, ({ estimatedCents }) => estimatedCents),
  resources: lines.map((line) => ({
    ...billed(line),
    hours: line.hours,
    amount_cents: line.amountCents,
    cap_cents: line.capCents,
    hourly_price_millicents: line.hourlyPriceMillicents,
    is_active: line.isActive,
  })),
  daily: rest.daily.map(({ date, amountCents }) => ({ date, amount_cents: amountCents })),
  credit_balance_cents: rest.creditBalanceCents,
  credit_next_expiry: rest.creditNextExpiry?.toISOString() ?? null,
})

export const toBillingLogEntry = (line: BillLine, day: BillLine['days'][number]): z.infer<typeof BillingLogEntry> => ({
  date: day.date,
  ...billed(line),
  hours: day.hours,
  hourly_price_millicents: line.hourlyPriceMillicents,
  amount_cents: day.amountCents,
})
