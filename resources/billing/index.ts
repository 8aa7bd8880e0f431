/** What an account used and what that costs: public shapes and routes. */
import { z } from 'zod'
import { type BillLine, sumOf } from '../../domain/billing/rules.ts'
import type { Month } from '../../domain/billing/transfer.ts'
import { DateTime, pageOf, PageQuery, Uuid } from '../kit/shapes.ts'
import { routesUnder } from '../kit/verbs.ts'

const Cents = z.int().min(0)
const Hours = z.int().min(0).describe('Clock hours (UTC) that were metered.')
export const CURRENCY = 'eur'
const Period = z
  .string()
  .regex(/^\d{4}-(0[1-9]|1[0-2])$/, 'must be a month, as in 2026-01')
  .describe('The calendar month (UTC) as YYYY-MM.')

const BILLED = {
  resource_type: z.string().describe('What was used: server, storage, public_ipv4, network_transfer and so on.'),
  resource_id: z.string().describe('Id of the resource; of traffic that of its server.'),
  name: z.string().describe('Its name, the newest that was known.'),
  plan: z.string().describe('Plan or tier; empty where there is none.'),
  hours: Hours,
}
const HourlyPrice = z
  .int()
  .min(0)
  .describe('Price of an hour in thousandths of a cent; 0 for what is not billed by it.')

export const BillingLogEntry = z
  .strictObject({
    date: z.iso.date().describe('Day (UTC).'),
    ...BILLED,
    hourly_price_millicents: HourlyPrice,
    amount_cents: Cents.describe('What the day added to the month, in cents.'),
  })
  .meta({ id: 'BillingLogEntry' })

export const UsageSummary = z
  .strictObject({
    currency: z.string().describe('ISO 4217 code, in lower case.'),
    period_start: DateTime,
    period_end: DateTime,
    metered_through: DateTime.nullable().describe('All hours before it are counted; null before the first.'),
    month_to_date_cents: Cents.describe('What the month costs until now: the sum of the resources.'),
    estimated_month_cents: Cents.describe('What it will have cost when everything active stays as it is.'),
    resources: z
      .array(
        z.strictObject({
          ...BILLED,
          amount_cents: Cents.describe('What it costs until now, in cents.'),
          cap_cents: Cents.describe('It costs no more than that in a month; 0 without such a bound.'),
          hourly_price_millicents: HourlyPrice,
          is_active: z.boolean().describe('Whether it goes on costing.'),
        }),
      )
      .describe('One line for each resource, plan and price of the month.'),
    daily: z
      .array(
        z.strictObject({
          date: z.iso.date().describe('Day (UTC).'),
          amount_cents: Cents.describe('What the day cost, in cents.'),
        }),
      )
      .describe('The last 90 days with today, oldest first.'),
    credit_balance_cents: Cents.describe('What live credits have left, in cents; the next invoice spends it first.'),
    credit_next_expiry: DateTime.nullable().describe('When the first of the live credits expires; null for never.'),
  })
  .meta({ id: 'UsageSummary' })

const billing = routesUnder({ path: '/v1', area: 'Payments, invoices, usage', permission: 'billing.read' })

export const getUsageSummary = billing.get('get_usage_summary', '/usage/summary', {
  summary: "Read the month's usage",
  description:
    'What the current calendar month (UTC) costs until now. Resources cost every clock hour that they existed in; ' +
    'the hour under way is counted when it is over.',
  answers: { 200: UsageSummary },
})
export const listBillingLog = billing.get('list_billing_log', '/usage/billing-log', {
  summary: 'List what each resource cost each day',
  description:
    'One line a resource and day, newest day first; two when its plan or price changed within the day. The lines of ' +
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
    currency: z.string().describe('ISO 4217 code, in lower case.'),
    total_cents: Cents.describe('What the month cost, before credits.'),
    credit_applied_cents: Cents.describe('What credits paid of it.'),
    amount_due_cents: Cents.describe('What is left to pay.'),
    created_at: DateTime,
    lines: z
      .array(
        z
          .strictObject({
            kind: z.enum(['usage', 'credit']).describe('credit for what a credit paid, with a negative amount.'),
            ...BILLED,
            amount_cents: z.int().describe('In cents; negative for credits.'),
            cap_cents: Cents.describe('It costs no more than that in a month; 0 without such a bound.'),
          })
          .meta({ id: 'InvoiceLine' }),
      )
      .describe('What was used, then what credits paid.'),
    payment_status: z
      .enum(['unbilled', 'open', 'paid', 'overdue'])
      .describe('unbilled while there is nothing to pay, or the payment processor does not have it.'),
    hosted_invoice_url: z
      .string()
      .nullable()
      .describe('Page of the payment processor to see and pay it; null without.'),
  })
  .meta({ id: 'Invoice' })

export const listInvoices = billing.get('list_invoices', '/invoices', {
  summary: 'List invoices',
  description: 'One a calendar month (UTC) in which anything was used, newest month first.',
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

/** `lines` are of the month; `daily` and the credits of the account. */
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
