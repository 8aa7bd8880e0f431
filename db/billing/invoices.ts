/** Invoices: each account has exactly one for each month in which it used anything, regardless of how many processes
 *  create them and when they die. */
import { type Selectable, sql, type Transaction } from 'kysely'
import { applyCredits, type BillLine, billMonth, type LiveCredit, periodOf, sumOf } from '../../domain/billing/rules.ts'
import { type Month, monthAround, monthOf } from '../../domain/billing/transfer.ts'
import { newUuid, type Random } from '../../kit/sys/random.ts'
import type { Database, Queries } from '../kit/open.ts'
import type { Tables } from '../tables.ts'
import { afterFailure } from './retry.ts'
import { readMonthUsage } from './usage.ts'
import { deleteWhere, selectWhere, updateWhere } from '../kit/where.ts'

const DAY_MILLISECONDS = 86_400_000

/** The months whose invoices are not all created, oldest first, with the first one that was not started. `before` is
 *  the start of the first month that is not over. */
export async function listMonthsToInvoice(queries: Queries, before: Date): Promise<readonly Month[]> {
  const begun = await queries
    .selectFrom('invoice_run')
    .select('period')
    .where('finished_at', 'is', null)
    .orderBy('period')
    .execute()
  const { rows } = await sql<{ first: Date | null }>`
    select coalesce(
      (select to_date(max(period), 'YYYY-MM') + interval '1 month' from invoice_run),
      (select least((select min(date) from usage_day), (select min(date) from network_transfer)))
    )::timestamp at time zone 'UTC' as first`.execute(queries)
  const next = rows.flatMap(({ first }) => (first === null ? [] : [monthAround(first)]))
  return [
    ...begun.flatMap(({ period }) => monthOf(period) ?? []),
    ...next.filter(({ end }) => end <= monthAround(before).start),
  ]
}

/** Closes the month and records which accounts get an invoice for it, once. Returns false while the month is not
 *  completely metered. */
export async function openInvoiceRun(db: Database, month: Month, now: Date): Promise<boolean> {
  return await db.transaction().execute(async (tx) => {
    // Waits for processes that are metering, and blocks them for the duration of this transaction.
    const metering = await tx.selectFrom('metering').selectAll().forUpdate().executeTakeFirst()
    if (metering?.metered_through == null || metering.metered_through < month.end) return false
    await sql`update metering set closed_until = greatest(closed_until, ${month.end}::timestamptz)`.execute(tx)
    const period = periodOf(month)
    const result = await tx
      .insertInto('invoice_run')
      .values({ period, account_count: 0, started_at: now })
      .onConflict((conflict) => conflict.doNothing())
      .executeTakeFirst()
    if (result.numInsertedOrUpdatedRows === 0n) return true
    const [first, last] = [dateOf(month.start), dateOf(new Date(month.end.getTime() - DAY_MILLISECONDS))]
    await sql`
      with noted as (
        insert into invoice_task (period, account_id, next_attempt_at)
        select ${period}, account_id, ${now}::timestamptz from (
          select account_id from usage_day where date between ${first}::date and ${last}::date and hours > 0
          union select account_id from network_transfer where date between ${first}::date and ${last}::date
        ) users
        returning 1
      )
      update invoice_run set account_count = (select count(*) from noted) where period = ${period}`.execute(tx)
    return true
  })
}

const DATE_LENGTH = 'YYYY-MM-DD'.length
const dateOf = (at: Date): string => at.toISOString().slice(0, DATE_LENGTH)

interface InvoiceParts {
  readonly db: Database
  readonly random: Random
}

/** Creates the invoice of one of the waiting accounts. Returns its account; undefined when none is due now. A failure
 *  is recorded and the account waits; `onFailure` is called with it. The record is written before anybody else can take
 *  the task: it is in the same transaction. */
export async function invoiceNext(
  { db, random }: InvoiceParts,
  month: Month,
  now: Date,
  onFailure: (accountId: string, error: unknown) => void,
): Promise<string | undefined> {
  return db.transaction().execute(async (tx) => {
    const task = await selectWhere(tx, 'invoice_task', { period: periodOf(month) })
      .select('account_id')
      .where('next_attempt_at', '<=', now)
      .orderBy('next_attempt_at')
      .orderBy('account_id')
      .limit(1)
      .forUpdate()
      .skipLocked()
      .executeTakeFirst()
    if (task === undefined) return undefined
    const accountId = task.account_id
    await sql`savepoint before_invoice`.execute(tx)
    try {
      await writeInvoice(tx, random, accountId, month, now)
    } catch (error) {
      await sql`rollback to savepoint before_invoice`.execute(tx)
      await noteFailure(tx, accountId, month, now, error)
      onFailure(accountId, error)
      return accountId
    }
    await deleteWhere(tx, 'invoice_task', { period: periodOf(month), account_id: accountId }).execute()
    return accountId
  })
}

async function noteFailure(
  tx: Transaction<Tables>,
  accountId: string,
  month: Month,
  now: Date,
  error: unknown,
): Promise<void> {
  await sql`
    update invoice_task set ${afterFailure(now, error)}
    where period = ${periodOf(month)} and account_id = ${accountId}`.execute(tx)
}

async function writeInvoice(
  tx: Transaction<Tables>,
  random: Random,
  accountId: string,
  month: Month,
  now: Date,
): Promise<void> {
  const lines = billMonth(month, await readMonthUsage(tx, accountId, month))
  if (lines.length === 0) return // traffic within the allowance
  const totalCents = sumOf(lines, ({ amountCents }) => amountCents)
  const applied = applyCredits(totalCents, await lockCredits(tx, accountId, month.end))
  const creditCents = sumOf(applied, ({ amountCents }) => amountCents)
  const id = newUuid(random)
  await tx
    .insertInto('invoice')
    .values({
      id,
      account_id: accountId,
      period: periodOf(month),
      period_start: month.start,
      period_end: month.end,
      currency: 'eur',
      total_cents: totalCents,
      credit_applied_cents: creditCents,
      payment_status: totalCents > 0 && creditCents === totalCents ? 'paid' : 'unbilled',
      created_at: now,
    })
    .execute()
  const rows = rowsOf(lines, applied)
  await sql`
    insert into invoice_line (invoice_id, position, kind, resource_type, resource_id, name, plan, hours, amount_cents,
      cap_cents)
    select ${id}::uuid, line.position, line.kind, line.resource_type, line.resource_id, line.name, line.plan,
      line.hours, line.amount_cents, line.cap_cents
    from jsonb_to_recordset(${JSON.stringify(rows.map((row, position) => ({ ...row, position })))}::jsonb) as line (
      position integer, kind text, resource_type text, resource_id text, name text, plan text, hours integer,
      amount_cents bigint, cap_cents bigint)`.execute(tx)
  if (totalCents > creditCents)
    await tx.insertInto('invoice_push').values({ invoice_id: id, next_attempt_at: now }).execute()
  for (const { credit, amountCents } of applied) {
    await tx
      .insertInto('credit_application')
      .values({ invoice_id: id, credit_id: credit.id, amount_cents: amountCents })
      .execute()
    await updateWhere(tx, 'credit', { id: credit.id })
      .set((set) => ({ spent_cents: set('spent_cents', '+', amountCents) }))
      .execute()
  }
}

/** Usage first, then what credits paid. */
function rowsOf(lines: readonly BillLine[], applied: ReturnType<typeof applyCredits>) {
  return [
    ...lines.map((line) => ({
      kind: 'usage' as const,
      resource_type: line.resourceType,
      resource_id: line.resourceId,
      name: line.name,
      plan: line.plan,
      hours: line.hours,
      amount_cents: line.amountCents,
      cap_cents: line.capCents,
    })),
    ...applied.map(({ credit, amountCents }) => ({
      kind: 'credit' as const,
      resource_type: 'credit',
      resource_id: credit.id,
      name: credit.label,
      plan: '',
      hours: 0,
      amount_cents: -amountCents,
      cap_cents: 0,
    })),
  ]
}

/** Credits that were live at the given time and have not been revoked since. */
async function lockCredits(tx: Transaction<Tables>, accountId: string, at: Date): Promise<readonly LiveCredit[]> {
  const rows = await selectWhere(tx, 'credit', { account_id: accountId })
    .select(['id', 'label', 'created_at', 'expires_at', 'amount_cents', 'spent_cents'])
    .where('created_at', '<', at)
    .where('revoked_at', 'is', null)
    .where((where) => where.or([where('expires_at', 'is', null), where('expires_at', '>', at)]))
    .whereRef('spent_cents', '<', 'amount_cents')
    .orderBy('id')
    .forUpdate()
    .execute()
  return rows.map((row) => ({
    id: row.id,
    label: row.label,
    createdAt: row.created_at,
    expiresAt: row.expires_at,
    leftCents: row.amount_cents - row.spent_cents,
  }))
}

/** Ends the run when no account is waiting; returns whether it has ended. */
export async function finishInvoiceRun(queries: Queries, month: Month, now: Date): Promise<boolean> {
  const ended = await updateWhere(queries, 'invoice_run', { period: periodOf(month) })
    .set({ finished_at: now })
    .where('finished_at', 'is', null)
    .where(({ not, exists, selectFrom }) =>
      not(
        exists(selectFrom('invoice_task').select('period').whereRef('invoice_task.period', '=', 'invoice_run.period')),
      ),
    )
    .executeTakeFirst()
  return ended.numUpdatedRows > 0n
}

export interface InvoiceRun {
  readonly period: string
  readonly startedAt: Date
  readonly finishedAt: Date | null
  /** Accounts that get an invoice. */
  readonly accountCount: number
  readonly waitingCount: number
  /** Of the waiting accounts: those with a failed attempt. */
  readonly failedCount: number
}

/** Newest first. */
export async function listInvoiceRuns(queries: Queries, limit: number): Promise<readonly InvoiceRun[]> {
  const { rows } = await sql<InvoiceRun>`
    select run.period, run.started_at as "startedAt", run.finished_at as "finishedAt",
      run.account_count as "accountCount", count(task.account_id) as "waitingCount",
      count(task.account_id) filter (where task.attempts > 0) as "failedCount"
    from invoice_run run left join invoice_task task on task.period = run.period
    group by run.period order by run.period desc limit ${limit}`.execute(queries)
  return rows
}

export interface FailedInvoice {
  readonly accountId: string
  readonly attempts: number
  readonly nextAttemptAt: Date
  readonly error: string
}

/** Accounts of the run that wait after a failure, in the order of their ids. */
export async function listFailedInvoices(
  queries: Queries,
  period: string,
  limit: number,
): Promise<readonly FailedInvoice[]> {
  const rows = await selectWhere(queries, 'invoice_task', { period })
    .selectAll()
    .where('attempts', '>', 0)
    .orderBy('account_id')
    .limit(limit)
    .execute()
  return rows.map((row) => ({
    accountId: row.account_id,
    attempts: row.attempts,
    nextAttemptAt: row.next_attempt_at,
    error: row.last_error ?? '',
  }))
}

/** Makes every failed account of the run due now; returns how many. */
export async function retryInvoices(queries: Queries, period: string, now: Date): Promise<number> {
  const { numUpdatedRows } = await updateWhere(queries, 'invoice_task', { period })
    .set({ next_attempt_at: now })
    .where('attempts', '>', 0)
    .executeTakeFirst()
  return Number(numUpdatedRows)
}

export type InvoiceLine = Omit<Selectable<Tables['invoice_line']>, 'invoice_id' | 'position'>
export type Invoice = Selectable<Tables['invoice']> & { readonly lines: readonly InvoiceLine[] }

/** Accounts of all runs that wait for their invoice, and how many of them have failed before. */
export async function countWaiting(queries: Queries): Promise<{ readonly waiting: number; readonly failed: number }> {
  const counts = await queries
    .selectFrom('invoice_task')
    .select(({ fn }) => [
      fn.countAll<number>().as('waiting'),
      fn.countAll<number>().filterWhere('attempts', '>', 0).as('failed'),
    ])
    .executeTakeFirstOrThrow()
  return counts
}

/** Newest month first, before the given period, with their lines. */
export async function listInvoices(
  queries: Queries,
  page: { readonly accountId: string; readonly before: string | undefined; readonly limit: number },
): Promise<readonly Invoice[]> {
  const { before } = page
  const invoices = await selectWhere(queries, 'invoice', { account_id: page.accountId })
    .selectAll()
    .$if(before !== undefined, (query) => query.where('period', '<', before ?? ''))
    .orderBy('period', 'desc')
    .limit(page.limit)
    .execute()
  if (invoices.length === 0) return []
  const lines = await queries
    .selectFrom('invoice_line')
    .selectAll()
    .where(
      'invoice_id',
      'in',
      invoices.map(({ id }) => id),
    )
    .orderBy('position')
    .execute()
  const linesOf = Map.groupBy(lines, ({ invoice_id }) => invoice_id)
  return invoices.map((invoice) => ({
    ...invoice,
    lines: (linesOf.get(invoice.id) ?? []).map(({ invoice_id: _invoice, position: _position, ...line }) => line),
  }))
}
