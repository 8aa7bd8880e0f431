import { sql } from 'kysely'
import { beforeEach, expect, test } from 'vitest'
import { invoiceMonths } from '../../../../controllers/nouns/billing/invoicing.ts'
import { addCredit } from '../../../../db/account/index.ts'
import {
  countWaiting,
  listFailedInvoices,
  listInvoiceRuns,
  listInvoices,
  readMonthUsage,
  retryInvoices,
} from '../../../../db/billing/index.ts'
import { amountAfter, billMonth, sumOf } from '../../../../domain/billing/rules.ts'
import { monthOf } from '../../../../domain/billing/transfer.ts'
import { silentLog as log } from '../../../../kit/sys/log.ts'
import { newUuid, systemRandom as random } from '../../../../kit/sys/random.ts'
import { createAccount } from '../../../accounts.ts'
import { useDatabase } from '../../../database.ts'
import { type MeteredCloud, openMeteredCloud } from './metered-cloud.ts'

const database = useDatabase()
let cloud: MeteredCloud

beforeEach(async () => {
  const { db } = database
  await sql`
    truncate price, billed_resource, billed_life, usage_hour, usage_day, network_transfer, invoice, invoice_line,
      invoice_push, credit_application, invoice_run, invoice_task, credit`.execute(db)
  await sql`update metering set looked_at = null, metered_through = null, closed_until = '1970-01-01Z'`.execute(db)
  cloud = openMeteredCloud(db)
  cloud.plan('tiny', 1_000)
  cloud.at('2026-02-01T00:00:00Z')
  await cloud.meter()
})

const invoice = () => invoiceMonths({ clock: cloud.clock, db: database.db, log, random })
const invoicesOf = (accountId: string) => listInvoices(database.db, { accountId, before: undefined, limit: 10 })

async function give(
  accountId: string,
  label: string,
  amountCents: number,
  createdAt: string,
  expiresAt: string | null,
) {
  await database.db.transaction().execute((tx) =>
    addCredit(tx, {
      id: newUuid(random),
      accountId,
      label,
      source: 'staff',
      amountCents,
      now: new Date(createdAt),
      expiresAt: expiresAt === null ? null : new Date(expiresAt),
    }),
  )
}

/** What must hold at rest, whatever happened. */
async function expectBooksToBalance() {
  const { rows } = await sql<object>`
    select 'credit' as what, id::text from credit c where spent_cents <>
      (select coalesce(sum(amount_cents), 0) from credit_application a where a.credit_id = c.id)
    union all select 'total', id::text from invoice i where total_cents <>
      (select coalesce(sum(amount_cents), 0) from invoice_line l where l.invoice_id = i.id and kind = 'usage')
    union all select 'applied', id::text from invoice i where credit_applied_cents <>
      (select coalesce(sum(amount_cents), 0) from credit_application a where a.invoice_id = i.id)
    union all select 'lines', id::text from invoice i where credit_applied_cents <>
      (select coalesce(-sum(amount_cents), 0) from invoice_line l where l.invoice_id = i.id and kind = 'credit')
    `.execute(database.db)
  expect(rows).toEqual([])
  for (const { id, account_id, period, total_cents } of await database.db.selectFrom('invoice').selectAll().execute()) {
    const month = monthOf(period)
    if (month === undefined) throw new Error(period)
    const lines = billMonth(month, await readMonthUsage(database.db, account_id, month))
    expect([id, sumOf(lines, ({ amountCents }) => amountCents)]).toEqual([id, total_cents])
  }
}

test('a month is invoiced once it is over, metered and an hour old; credits pay by expiry, then age', async () => {
  const accountId = await createAccount(database.db)
  await give(accountId, 'never', 10_000, '2026-01-01T00:00:00Z', null)
  await give(accountId, 'later', 100, '2026-01-01T00:00:00Z', '2026-06-01T00:00:00Z')
  await give(accountId, 'sooner, younger', 200, '2026-01-03T00:00:00Z', '2026-04-01T00:00:00Z')
  await give(accountId, 'sooner, older', 300, '2026-01-02T00:00:00Z', '2026-04-01T00:00:00Z')
  await give(accountId, 'expired in the month', 500, '2026-01-02T00:00:00Z', '2026-02-20T00:00:00Z')
  await give(accountId, 'of the next month', 500, '2026-03-01T00:00:00Z', '2026-03-20T00:00:00Z')
  const server = cloud.server({ accountId, plan: 'tiny', name: 'web' })
  cloud.at('2026-03-01T00:59:00Z')
  await cloud.meter()
  await invoice()
  expect(await invoicesOf(accountId)).toEqual([])
  cloud.at('2026-03-01T01:00:00Z')
  await Promise.all([invoice(), invoice(), invoice()])
  await invoice()
  const total = amountAfter(672, 1_000)
  const [made, ...more] = await invoicesOf(accountId)
  expect(more).toEqual([])
  expect(made).toMatchObject({
    period: '2026-02',
    total_cents: total,
    credit_applied_cents: total,
    payment_status: 'paid',
    currency: 'eur',
  })
  expect(
    made?.lines.map(({ kind, name, hours, amount_cents, cap_cents }) => [kind, name, hours, amount_cents, cap_cents]),
  ).toEqual([
    ['usage', 'web', 672, total, 1_000],
    ['credit', 'sooner, older', 0, -300, 0],
    ['credit', 'sooner, younger', 0, -200, 0],
    ['credit', 'later', 0, -100, 0],
    ['credit', 'never', 0, -(total - 600), 0],
  ])
  cloud.at('2026-03-02T00:00:00Z')
  await server.delete()
  cloud.at('2026-05-02T00:00:00Z')
  await cloud.meter()
  await invoice()
  expect((await invoicesOf(accountId)).map(({ period }) => period)).toEqual(['2026-03', '2026-02'])
  expect(
    (await listInvoiceRuns(database.db, 9)).map((run) => [run.period, run.accountCount, run.finishedAt !== null]),
  ).toEqual([
    ['2026-04', 0, true],
    ['2026-03', 1, true],
    ['2026-02', 1, true],
  ])
  await expectBooksToBalance()
})

test('nothing is invoiced before the month is metered to its end', async () => {
  const accountId = await createAccount(database.db)
  cloud.server({ accountId, plan: 'tiny' })
  cloud.at('2026-02-28T23:30:00Z')
  await cloud.meter()
  cloud.at('2026-03-01T04:00:00Z')
  await invoice()
  expect(await invoicesOf(accountId)).toEqual([])
  await cloud.meter()
  await invoice()
  expect(await invoicesOf(accountId)).toMatchObject([
    { total_cents: amountAfter(672, 1_000), payment_status: 'unbilled' },
  ])
})

test('what costs nothing is left unbilled, and what credits do not cover waits for the payment processor', async () => {
  const [free, poor] = [await createAccount(database.db), await createAccount(database.db)]
  cloud.plan('free', 0)
  cloud.server({ accountId: free, plan: 'free' })
  cloud.server({ accountId: poor, plan: 'tiny' })
  await give(poor, 'a little', 1, '2026-01-01T00:00:00Z', null)
  cloud.at('2026-03-01T04:00:00Z')
  await cloud.meter()
  await invoice()
  expect(await invoicesOf(free)).toMatchObject([
    { total_cents: 0, credit_applied_cents: 0, payment_status: 'unbilled' },
  ])
  expect(await invoicesOf(poor)).toMatchObject([{ credit_applied_cents: 1, payment_status: 'unbilled' }])
})

test('an invoice that cannot be made keeps no other from it, and is tried again', async () => {
  const accounts = await Promise.all([1, 2, 3].map(() => createAccount(database.db)))
  for (const accountId of accounts) cloud.server({ accountId, plan: 'tiny' })
  const [broken = ''] = accounts.toSorted()
  cloud.at('2026-03-01T04:00:00Z')
  await cloud.meter()
  await sql`alter table invoice add constraint broken check (account_id <> ${sql.lit(broken)}::uuid)`.execute(
    database.db,
  )
  await invoice()
  expect((await Promise.all(accounts.map(invoicesOf))).flat().length).toBe(2)
  expect(await countWaiting(database.db)).toEqual({ waiting: 1, failed: 1 })
  expect(await listFailedInvoices(database.db, '2026-02', 9)).toMatchObject([
    { accountId: broken, attempts: 1, error: expect.stringContaining('broken') },
  ])
  await invoice() // not yet
  cloud.at('2026-03-01T04:02:00Z')
  await invoice()
  expect(await listFailedInvoices(database.db, '2026-02', 9)).toMatchObject([{ attempts: 2 }])
  cloud.at('2026-04-01T04:02:00Z')
  await cloud.meter()
  await sql`alter table invoice drop constraint broken`.execute(database.db)
  await sql`update invoice_task set next_attempt_at = '2027-01-01Z'`.execute(database.db)
  await invoice()
  expect((await invoicesOf(broken)).map(({ period }) => period)).toEqual(['2026-03'])
  expect(await retryInvoices(database.db, '2026-02', cloud.clock.now())).toBe(1)
  await invoice()
  expect((await invoicesOf(broken)).map(({ period }) => period)).toEqual(['2026-03', '2026-02'])
  expect(await countWaiting(database.db)).toEqual({ waiting: 0, failed: 0 })
  await expectBooksToBalance()
})

test('a failed attempt is noted before anybody else can try', async () => {
  const accounts = await Promise.all(Array.from({ length: 20 }, () => createAccount(database.db)))
  for (const accountId of accounts) cloud.server({ accountId, plan: 'tiny' })
  cloud.at('2026-03-01T04:00:00Z')
  await cloud.meter()
  await sql`alter table invoice add constraint broken check (false)`.execute(database.db)
  await Promise.all([invoice(), invoice()])
  const attempts = (await listFailedInvoices(database.db, '2026-02', 99)).map((each) => each.attempts)
  expect(attempts).toEqual(accounts.map(() => 1))
  await sql`alter table invoice drop constraint broken`.execute(database.db)
})

test('runs that die anywhere, and run at the same time, make each invoice once', async () => {
  const accounts = await Promise.all(Array.from({ length: 40 }, () => createAccount(database.db)))
  for (const accountId of accounts) {
    cloud.server({ accountId, plan: 'tiny' })
    await give(accountId, 'some', 250, '2026-01-01T00:00:00Z', null)
  }
  cloud.at('2026-03-01T04:00:00Z')
  await cloud.meter()
  const run = () => invoice().catch(() => {}) // its connection was cut
  for (let deaths = 0; deaths < 10; deaths++) {
    const runs = [run(), run(), run()]
    const { count } = await database.db
      .selectFrom('invoice')
      .select(({ fn }) => fn.countAll<number>().as('count'))
      .executeTakeFirstOrThrow()
    if (count < 40) await database.breakConnections()
    await Promise.all(runs)
  }
  cloud.at('2026-03-02T04:00:00Z')
  await invoice()
  for (const accountId of accounts)
    expect((await invoicesOf(accountId)).map((each) => [each.period, each.credit_applied_cents])).toEqual([
      ['2026-02', 250],
    ])
  expect(await listInvoiceRuns(database.db, 9)).toMatchObject([
    { accountCount: 40, waitingCount: 0, failedCount: 0, finishedAt: expect.any(Date) },
  ])
  await expectBooksToBalance()
})
