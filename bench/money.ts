/** `node bench/money.ts [--accounts 10000] [--resources 100000]`: metering an hour and a day of all resources, and the
 *  invoices of a month, each against the same rows written by plain SQL; and the latency of a small query meanwhile.
 *  Prints a table for docs/billing.md. Takes minutes; `npm run bench` does not run it. */
import { parseArgs } from 'node:util'
import { sql } from 'kysely'
import { invoiceMonths } from '../controllers/nouns/billing/invoicing.ts'
import { meterBatch, recordSeen } from '../db/billing/index.ts'
import type { Database } from '../db/kit/open.ts'
import { systemClock } from '../kit/sys/clock.ts'
import { answerHelp } from '../kit/sys/help.ts'
import { silentLog as log } from '../kit/sys/log.ts'
import { exitProcess, printLine, processArguments } from '../kit/sys/process.ts'
import { systemRandom as random } from '../kit/sys/random.ts'
import { createDatabase, stopPostgres } from './postgres.ts'

answerHelp(import.meta.filename)
const { values } = parseArgs({
  args: [...processArguments()],
  options: {
    accounts: { type: 'string', default: '10000' },
    resources: { type: 'string', default: '100000' },
  },
})
const [ACCOUNTS, RESOURCES] = [Number(values.accounts), Number(values.resources)]
const SEEN_AT_ONCE = 1_000
const MONTH_DAYS = 28
const START = new Date('2026-02-01T00:00:00Z')
const HOUR = 3_600_000
const after = (hours: number) => new Date(START.getTime() + hours * HOUR)

const accountOf = (number: number) => `00000000-0000-4000-8000-${String(number % ACCOUNTS).padStart(12, '0')}`
const resourceOf = (number: number) => ({
  accountId: accountOf(number),
  resourceType: 'server',
  uid: `u${number}`,
  resourceId: `r${number}`,
  name: `server ${number}`,
  plan: 'tiny',
  quantity: 1,
  since: START,
  changedAt: START,
  until: undefined,
})

/** The duration of the work in seconds, and the latency of a query of a customer's request meanwhile. */
async function measure(db: Database, work: () => Promise<unknown>) {
  const waits: number[] = []
  const over = new AbortController()
  const asking = (async () => {
    while (!over.signal.aborted) {
      const begun = performance.now()
      await db.selectFrom('account').select('id').where('id', '=', accountOf(waits.length)).executeTakeFirst()
      waits.push(performance.now() - begun)
      await systemClock.sleep(5, over.signal)
    }
  })()
  const begun = performance.now()
  await work()
  const seconds = (performance.now() - begun) / 1_000
  over.abort()
  await asking
  const sorted = waits.toSorted((one, other) => one - other)
  return { seconds, waitMilliseconds: sorted[Math.floor(sorted.length * 0.99)] ?? 0 }
}

async function seeAll(db: Database): Promise<void> {
  for (let start = 0; start < RESOURCES; start += SEEN_AT_ONCE) {
    const seen = Array.from({ length: Math.min(SEEN_AT_ONCE, RESOURCES - start) }, (_, at) => resourceOf(start + at))
    await db.transaction().execute((tx) => recordSeen(tx, seen))
  }
}

async function meterThrough(db: Database, hours: number): Promise<void> {
  while ((await meterBatch(db, after(hours))) > 0);
}

/** The same rows, in one statement. */
async function insertHours(db: Database, from: number, to: number): Promise<void> {
  await sql`
    insert into plain_hour select resource, hour, life, monthly_cents from usage_hour
    where hour >= ${after(from)} and hour < ${after(to)}`.execute(db)
}

async function useMonth(db: Database): Promise<void> {
  await sql`delete from usage_day`.execute(db)
  await sql`
    insert into usage_day (account_id, date, life, monthly_cents, resource, first_hour, hours)
    select account_id, date '2026-02-01' + day, id, 499, resource, 0, 24
    from billed_life cross join generate_series(0, ${MONTH_DAYS - 1}) day`.execute(db)
  await sql`update billed_life set metered_until = '2026-03-01Z'`.execute(db)
  await sql`update metering set metered_through = '2026-03-01Z'`.execute(db)
  await sql`analyze`.execute(db)
}

const clockAt = (at: Date) => ({ ...systemClock, now: () => at })

async function insertInvoices(db: Database): Promise<void> {
  await sql`insert into plain_invoice select * from invoice`.execute(db)
  await sql`insert into plain_line select * from invoice_line`.execute(db)
}

const { db, drop } = await createDatabase()
const rows: string[] = []
async function row(what: string, count: number, work: () => Promise<unknown>, plain?: () => Promise<unknown>) {
  const { seconds, waitMilliseconds } = await measure(db, work)
  const bare = plain && (await measure(db, plain)).seconds
  const cells = [
    what,
    count.toLocaleString('en'),
    seconds.toFixed(1),
    bare === undefined ? '' : bare.toFixed(1),
    waitMilliseconds.toFixed(0),
  ]
  rows.push(`| ${cells.join(' | ')} |`)
}

await sql`
  insert into account (id, name, created_at)
  select ('00000000-0000-4000-8000-' || lpad(n::text, 12, '0'))::uuid, 'Account', '2026-01-01Z'
  from generate_series(0, ${ACCOUNTS - 1}) n`.execute(db)
await sql`
  insert into price (resource_type, plan, valid_from, unit_millicents)
  values ('server', 'tiny', '2026-01-01Z', 499000)`.execute(db)
for (const [plain, table] of [
  ['plain_hour', 'usage_hour'],
  ['plain_invoice', 'invoice'],
  ['plain_line', 'invoice_line'],
] as const)
  await sql`create table ${sql.table(plain)} (like ${sql.table(table)} including indexes)`.execute(db)

await row('resources seen for the first time', RESOURCES, () => seeAll(db))
await row(
  'an hour metered',
  RESOURCES,
  () => meterThrough(db, 1),
  () => insertHours(db, 0, 1),
)
await row(
  'a day caught up with',
  RESOURCES * 23,
  () => meterThrough(db, 24),
  () => insertHours(db, 1, 24),
)
await useMonth(db)
const night = { clock: clockAt(new Date('2026-03-01T02:00:00Z')), db, log, random }
await row(
  'invoices of a month',
  ACCOUNTS,
  () => invoiceMonths(night),
  () => insertInvoices(db),
)
const { rows: made } = await sql<{ invoices: number; lines: number }>`
  select (select count(*)::integer from invoice) as invoices,
    (select count(*)::integer from invoice_line) as lines`.execute(db)
printLine('| What | Rows | Seconds | Plain SQL, seconds | A query waits, p99 ms |')
printLine('|---|---|---|---|---|')
for (const line of rows) printLine(line)
printLine(`${made[0]?.invoices} invoices with ${made[0]?.lines} lines`)
await drop()
await stopPostgres()
exitProcess(0)
