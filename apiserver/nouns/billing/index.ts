/** An account's usage and its cost: computed from metered hours at every request, by the rules of invoices. */
import * as routes from '../../../resources/billing/index.ts'
import { creditBalance, nextCreditExpiry } from '../../../db/account/index.ts'
import { type Invoice, firstUsageAt, listInvoices, readMetering, readMonthUsage } from '../../../db/billing/index.ts'
import type { Queries } from '../../../db/kit/open.ts'
import { type BillLine, billMonth, monthBefore, sumOf } from '../../../domain/billing/rules.ts'
import { type Month, monthAround } from '../../../domain/billing/transfer.ts'
import type { Answer, Call, Customer } from '../../../kit/http/call.ts'
import { type Endpoint, customerEndpoint } from '../../../kit/http/endpoint.ts'
import { answerOf, readPage } from '../../kit/list/page.ts'
import type { Parts } from '../../kit/parts.ts'
import { noun } from '../../kit/noun.ts'

type BillingParts = Pick<Parts, 'db' | 'cursors'>

const DAYS_SHOWN = 90
const DAY_MILLISECONDS = 86_400_000
const DATE_LENGTH = 'YYYY-MM-DD'.length
const dateOf = (at: Date): string => at.toISOString().slice(0, DATE_LENGTH)

const billingEndpoints = (parts: BillingParts): readonly Endpoint[] => [
  customerEndpoint(routes.getUsageSummary, (call) => summarize(parts, call)),
  customerEndpoint(routes.listBillingLog, (call) => listLog(parts, call)),
  customerEndpoint(routes.listInvoices, async (call) => {
    const { accountId } = call.caller
    const page = await readPage(
      parts.cursors,
      call,
      (after, limit) => listInvoices(parts.db, { accountId, before: after?.sortKey, limit }),
      ({ period, id }) => ({ sortKey: period, id }),
      { viewsOf: (invoices) => invoices.map(invoiceView) },
    )
    return answerOf(page)
  }),
]

const invoiceView = (invoice: Invoice) => ({
  id: invoice.id,
  period: invoice.period,
  period_start: invoice.period_start.toISOString(),
  period_end: invoice.period_end.toISOString(),
  currency: invoice.currency,
  total_cents: invoice.total_cents,
  credit_applied_cents: invoice.credit_applied_cents,
  amount_due_cents: invoice.total_cents - invoice.credit_applied_cents,
  created_at: invoice.created_at.toISOString(),
  lines: invoice.lines,
  payment_status: invoice.payment_status,
  hosted_invoice_url: invoice.hosted_invoice_url,
})

async function summarize({ db }: BillingParts, call: Call<typeof routes.getUsageSummary, Customer>): Promise<Answer> {
  const {
    caller: { accountId },
    now,
  } = call
  // One snapshot, so that sums agree even if hours are metered meanwhile.
  return await db
    .transaction()
    .setIsolationLevel('repeatable read')
    .execute(async (tx) => {
      const { month, lines, ...rest } = await readMonthCost(tx, accountId, now)
      const daily = await sumDays(tx, accountId, month, lines, now)
      return { status: 200, body: routes.toUsageSummary(month, lines, { ...rest, daily }) }
    })
}

/** The cost of the month that contains the time, and the credits that pay it. */
export async function readMonthCost(queries: Queries, accountId: string, now: Date) {
  const month = monthAround(now)
  return {
    month,
    lines: billMonth(month, await readMonthUsage(queries, accountId, month, now)),
    meteredThrough: (await readMetering(queries)).meteredThrough,
    creditBalanceCents: await creditBalance(queries, accountId, now),
    creditNextExpiry: await nextCreditExpiry(queries, accountId, now),
  }
}

/** The cost of each of the last days, oldest first. */
async function sumDays(queries: Queries, accountId: string, month: Month, lines: readonly BillLine[], now: Date) {
  const first = new Date(now.getTime() - (DAYS_SHOWN - 1) * DAY_MILLISECONDS)
  const days = lines.flatMap((line) => line.days)
  for (let earlier = monthBefore(month); earlier.end > first; earlier = monthBefore(earlier))
    days.push(...billMonth(earlier, await readMonthUsage(queries, accountId, earlier)).flatMap((line) => line.days))
  const byDate = Map.groupBy(days, ({ date }) => date)
  return Array.from({ length: DAYS_SHOWN }, (_, index) => {
    const date = dateOf(new Date(first.getTime() + index * DAY_MILLISECONDS))
    return { date, amountCents: sumOf(byDate.get(date) ?? [], ({ amountCents }) => amountCents) }
  })
}

interface LogLine {
  readonly line: BillLine
  readonly day: BillLine['days'][number]
  /** Identifies the line among those of its day. */
  readonly key: string
}

async function listLog(parts: BillingParts, call: Call<typeof routes.listBillingLog, Customer>): Promise<Answer> {
  const {
    caller: { accountId },
    now,
  } = call
  const page = await readPage(
    parts.cursors,
    call,
    (after, count) => listLogLines(parts.db, accountId, now, after && { date: after.sortKey, key: after.id }, count),
    ({ day, key }) => ({ sortKey: day.date, id: key }),
    { viewsOf: (lines) => lines.map(({ line, day }) => routes.toBillingLogEntry(line, day)) },
  )
  return answerOf(page)
}

/** Month by month, because days are differences within their month. */
async function listLogLines(
  queries: Queries,
  accountId: string,
  now: Date,
  after: { readonly date: string; readonly key: string } | undefined,
  count: number,
): Promise<readonly LogLine[]> {
  const found: LogLine[] = []
  const firstAt = await firstUsageAt(queries, accountId)
  if (firstAt === undefined) return found
  const newest = after === undefined ? now : new Date(after.date)
  for (let month = monthAround(newest); month.end > firstAt && found.length < count; month = monthBefore(month))
    found.push(
      ...billMonth(month, await readMonthUsage(queries, accountId, month))
        .flatMap((line) => line.days.map((day) => ({ line, day, key: logKeyOf(line) })))
        .filter((each) => after === undefined || compareLog(after, { date: each.day.date, key: each.key }) < 0)
        .sort((one, other) =>
          compareLog({ date: one.day.date, key: one.key }, { date: other.day.date, key: other.key }),
        ),
    )
  return found
}

type LogPlace = { readonly date: string; readonly key: string }

/** Newest day first, within a day by key. */
const compareLog = (one: LogPlace, other: LogPlace): number =>
  one.date === other.date ? compareText(one.key, other.key) : compareText(other.date, one.date)
const compareText = (one: string, other: string): number => (one < other ? -1 : one > other ? 1 : 0)

/** Different from the key of any other line of the month. */
const logKeyOf = ({ resourceType, resource, resourceId, plan, capCents }: BillLine): string =>
  [resourceType, resourceId, resource, plan, capCents].join(' ')

export const billing = noun<Parts>({ name: 'billing', endpoints: billingEndpoints })
