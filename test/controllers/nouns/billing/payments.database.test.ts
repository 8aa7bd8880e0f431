import { sql } from 'kysely'
import { beforeEach, expect, test } from 'vitest'
import { compareLedger } from '../../../../controllers/nouns/billing/comparison.ts'
import { recordInvoiceState } from '../../../../controllers/nouns/billing/invoice-state.ts'
import { invoiceMonths } from '../../../../controllers/nouns/billing/invoicing.ts'
import { processPayments, upkeep } from '../../../../controllers/nouns/billing/payments.ts'
import { forgetHours } from '../../../../controllers/nouns/billing/retention.ts'
import {
  findPaymentCustomer,
  listFailedPushes,
  listInvoices,
  readComparison,
  recordPaymentCustomer,
  storePaymentEvent,
} from '../../../../db/billing/index.ts'
import type { FakeRequest } from '../../../../embedded/fake-payments/processor.ts'
import { silentLog as log } from '../../../../kit/sys/log.ts'
import { newUuid, systemRandom as random } from '../../../../kit/sys/random.ts'
import { createAccount, giveStanding } from '../../../accounts.ts'
import { useDatabase } from '../../../database.ts'
import { type Fault, openTestPayments, type TestPayments } from '../../../payments.ts'
import { type MeteredCloud, openMeteredCloud } from './metered-cloud.ts'

const database = useDatabase()
let cloud: MeteredCloud
let paying: TestPayments

beforeEach(async () => {
  const { db } = database
  await sql`
    truncate price, billed_resource, billed_life, usage_hour, usage_day, network_transfer, invoice, invoice_line,
      invoice_push, credit_application, invoice_run, invoice_task, credit, payment_customer, payment_event,
      email_outbox`.execute(db)
  await sql`update metering set looked_at = null, metered_through = null, closed_until = '1970-01-01Z'`.execute(db)
  await sql`update payment_comparison set due_at = '2100-01-01Z'`.execute(db)
  cloud = openMeteredCloud(db)
  paying = openTestPayments(cloud.clock)
  cloud.plan('tiny', 1_000)
  cloud.at('2026-02-01T00:00:00Z')
  await cloud.meter()
})

const parts = () => ({
  clock: cloud.clock,
  db: database.db,
  log,
  random,
  processor: paying.payments.processor,
})
const work = () => processPayments(parts())
const invoiceOf = async (accountId: string) =>
  (await listInvoices(database.db, { accountId, before: undefined, limit: 9 }))[0]
const later = (milliseconds: number) => cloud.at(new Date(cloud.clock.now().getTime() + milliseconds))
const MINUTE = 60_000
const HOUR = 60 * MINUTE
const DAY = 24 * HOUR

/** An account that owes the month of a server, and has a card of the kind. */
async function owe(card?: 'good' | 'bad'): Promise<string> {
  const accountId = await createAccount(database.db)
  if (card !== undefined) await saveCard(accountId, card === 'good')
  cloud.server({ accountId, plan: 'tiny' })
  cloud.at('2026-03-01T02:00:00Z')
  await cloud.meter()
  await invoiceMonths({ clock: cloud.clock, db: database.db, log, random })
  return accountId
}

async function saveCard(accountId: string, isGood: boolean): Promise<void> {
  const { db } = database
  const { processor } = paying.payments
  const customerId =
    (await findPaymentCustomer(db, accountId)) ??
    (await recordPaymentCustomer(
      db,
      accountId,
      await processor.createCustomer({ accountId, name: 'Ada', email: undefined }),
      cloud.clock.now(),
    ))
  const url = await processor.createSetupSession(customerId, 'http://127.0.0.1/settings/billing', 'eur')
  paying.fake.completeSession(url.split('/').at(-1) ?? '', isGood)
  await hear()
}

/** Everything that the processor has to tell comes, and is used. */
async function hear(events = paying.takeEvents()): Promise<void> {
  for (const { body, signature } of events) {
    const event = paying.payments.readEvent(Buffer.from(body), signature, cloud.clock.now())
    const { id, type, invoiceId = null, customerId = null } = event
    await storePaymentEvent(database.db, { id, type, invoiceId, customerId }, cloud.clock.now())
  }
  await work()
}

const isPost = (request: FakeRequest, part: string) => request.method === 'POST' && request.path.endsWith(part)

test('the first card becomes the default one, and an invoice is charged to it', async () => {
  const accountId = await owe('good')
  expect(await invoiceOf(accountId)).toMatchObject({ payment_status: 'unbilled', hosted_invoice_url: null })
  await work()
  expect(await invoiceOf(accountId)).toMatchObject({
    payment_status: 'open',
    hosted_invoice_url: expect.stringContaining('/fake/invoices/'),
  })
  paying.fake.chargeDue()
  await hear()
  const paid = await invoiceOf(accountId)
  expect(paid).toMatchObject({ payment_status: 'paid' })
  expect(paying.fake.state.charges.map(({ amount }) => amount)).toEqual([paid?.total_cents])
  await work()
  expect(paying.fake.state.invoices).toHaveLength(1)
})

test('credits are lines of the invoice at the processor, and what they pay in full never goes there', async () => {
  const accountId = await owe('good')
  const invoice = await invoiceOf(accountId)
  await sql`
    insert into invoice_line (invoice_id, position, kind, resource_type, resource_id, name, plan, hours, amount_cents,
      cap_cents) values (${invoice?.id}, 1, 'credit', 'credit', 'c', 'Welcome', '', 0, -100, 0)`.execute(database.db)
  await sql`update invoice set credit_applied_cents = 100`.execute(database.db)
  await work()
  expect(paying.fake.state.invoices[0]?.lines.map(({ amount, description }) => [amount, description])).toEqual([
    [invoice?.total_cents, expect.stringMatching(/^server .*, tiny, 672 h$/)],
    [-100, 'Credit: Welcome'],
  ])
})

/** Which request of the way meets it, and which fault. */
const FAULTS: readonly Fault[] = ['lost', 'unanswered', 'busy', 'conflict', 'broken', 'broken_after']
const REQUESTS = ['/customers', '/invoices', '/add_lines', '/finalize'] as const
test.each(REQUESTS.flatMap((path) => FAULTS.map((fault) => [path, fault] as const)))(
  '%s, %s: the invoice is charged once, whether the key is still known or not',
  async (path, fault) => {
    const accountId = await owe()
    for (const wait of [2 * MINUTE, 25 * HOUR]) {
      let isStruck = false
      paying.fault((request) => {
        if (isStruck || !isPost(request, path)) return undefined
        isStruck = true
        return fault
      })
      await work()
      expect(isStruck || wait > HOUR).toBe(true)
      later(wait)
    }
    paying.fault(() => undefined)
    await work()
    later(2 * HOUR)
    await work()
    const due = (await invoiceOf(accountId))?.total_cents
    expect(await invoiceOf(accountId)).toMatchObject({ payment_status: 'open' })
    expect(paying.fake.state.invoices.map(({ status, lines }) => [status, lines.map(({ amount }) => amount)])).toEqual([
      ['open', [due]],
    ])
    expect(await listFailedPushes(database.db, 9)).toEqual([])
    expect(await compareLedger(parts())).toEqual([])
  },
)

test('events that come before the answer, twice or in the wrong order change nothing', async () => {
  const accountId = await owe('good')
  paying.fault((request) => (isPost(request, '/finalize') ? 'unanswered' : undefined))
  await work()
  paying.fault(() => undefined)
  expect(await invoiceOf(accountId)).toMatchObject({ payment_status: 'unbilled' })
  const early = paying.takeEvents()
  await hear(early)
  expect(await invoiceOf(accountId)).toMatchObject({ payment_status: 'open' })
  paying.fake.chargeDue()
  const charged = paying.takeEvents()
  await hear(charged)
  expect(await invoiceOf(accountId)).toMatchObject({ payment_status: 'paid' })
  await hear([...early, ...charged].toReversed())
  await database.db
    .updateTable('payment_event')
    .set({ processed_at: null, next_attempt_at: new Date(0) })
    .execute()
  await work()
  later(DAY)
  await work()
  expect(await invoiceOf(accountId)).toMatchObject({ payment_status: 'paid', overdue_since: null })
  expect(paying.fake.state.charges).toHaveLength(1)
})

test('after the grace period of a failed charge the account is suspended, and paying lifts that', async () => {
  const accountId = await owe('bad')
  const account = () =>
    database.db.selectFrom('account').selectAll().where('id', '=', accountId).executeTakeFirstOrThrow()
  await work()
  paying.fake.chargeDue()
  await hear()
  expect(await invoiceOf(accountId)).toMatchObject({ payment_status: 'overdue' })
  later(14 * DAY - MINUTE)
  await upkeep(parts())
  expect((await account()).suspended_for_payment_at).toBeNull()
  later(MINUTE)
  await upkeep(parts())
  await upkeep(parts())
  expect((await account()).suspended_for_payment_at).not.toBeNull()
  const byStaff = cloud.clock.now()
  await sql`update account set suspended_by_staff_at = ${byStaff} where id = ${accountId}`.execute(database.db)
  paying.fake.pay(paying.fake.state.invoices[0]?.id ?? '', true)
  await hear()
  expect(await account()).toMatchObject({ suspended_for_payment_at: null, suspended_by_staff_at: byStaff })
  expect(await invoiceOf(accountId)).toMatchObject({ payment_status: 'paid', overdue_since: null })
  const entries = await database.db
    .selectFrom('audit_entry')
    .select('body')
    .where('account_id', '=', accountId)
    .execute()
  const actions = entries.map(({ body }) => (JSON.parse(body) as { action: string }).action)
  expect(actions.filter((action) => /suspended/.test(action))).toEqual(['account.suspended', 'account.unsuspended'])
})

test('unreported changes of the processor are found at night; differences are reported and not changed', async () => {
  const accountId = await owe('good')
  await work()
  paying.fake.chargeDue()
  paying.takeEvents() // nobody hears of it
  await sql`update payment_comparison set due_at = '1970-01-01Z'`.execute(database.db)
  await upkeep(parts())
  const invoice = await invoiceOf(accountId)
  expect(invoice).toMatchObject({ payment_status: 'paid' })
  expect((await readComparison(database.db)).differences).toEqual([])

  const [there] = paying.fake.state.invoices
  if (there === undefined || invoice === undefined) throw new Error('no invoice')
  const kinds = async () => (await compareLedger(parts())).map(({ kind }) => kind).toSorted()
  there.lines.push({ id: 'il', amount: 1, description: '', metadata: {} })
  expect(await kinds()).toEqual(['amount'])
  there.lines.pop()
  there.status = 'void'
  expect(await kinds()).toEqual(['status'])
  there.status = 'paid'
  paying.fake.state.invoices.push({ ...there, id: 'in_second' })
  expect(await kinds()).toEqual(['charged_twice'])
  paying.fake.state.invoices.push({ ...there, id: 'in_third', metadata: { invoice_id: newUuid(random) } })
  expect(await kinds()).toEqual(['charged_twice', 'missing_in_ledger'])
  paying.fake.state.invoices = []
  expect(await kinds()).toEqual(['missing_at_processor'])
  paying.fake.state.invoices = [there]
  await sql`update invoice_line set amount_cents = amount_cents + 1`.execute(database.db)
  expect(await kinds()).toEqual(['lines'])
  expect((await invoiceOf(accountId))?.payment_status).toBe('paid')
})

test('a draft with another sum is removed and created again', async () => {
  const accountId = await owe('good')
  paying.fault((request) => (isPost(request, '/finalize') ? 'lost' : undefined))
  await work()
  paying.fault(() => undefined)
  paying.fake.state.invoices[0]?.lines.push({ id: 'il', amount: 5, description: '', metadata: {} })
  later(2 * HOUR)
  await work()
  later(2 * HOUR)
  await work()
  const due = (await invoiceOf(accountId))?.total_cents
  expect(paying.fake.state.invoices.map(({ status, lines }) => [status, lines.length, lines[0]?.amount])).toEqual([
    ['open', 1, due],
  ])
})

test('an invoice whose creation nobody heard of is found when its key is forgotten, and not made again', async () => {
  const accountId = await owe('good')
  paying.fault((request) => (isPost(request, '/invoices') ? 'unanswered' : undefined))
  await work()
  paying.fault(() => undefined)
  later(25 * HOUR)
  await work()
  expect(await invoiceOf(accountId)).toMatchObject({ payment_status: 'open' })
  expect(paying.fake.state.invoices).toHaveLength(1)
})

test.each(['/invoices', '/add_lines', '/finalize'])(
  'a refusal of %s that the processor would repeat for its key is retried with another',
  async (path) => {
    const accountId = await owe('good')
    let isStruck = false
    paying.fault((request) => {
      if (isStruck || !isPost(request, path)) return undefined
      isStruck = true
      return 'broken'
    })
    await work()
    expect(await invoiceOf(accountId)).toMatchObject({ payment_status: 'unbilled' })
    later(2 * HOUR)
    await work()
    expect(await invoiceOf(accountId)).toMatchObject({ payment_status: 'open' })
  },
)

test('no key is used for longer than the processor remembers it', async () => {
  await owe('good')
  const usedSince = new Map<string, number>()
  const ages: number[] = []
  paying.fault(({ method, idempotencyKey: key = '' }) => {
    if (method !== 'POST') return undefined
    const now = cloud.clock.now().getTime()
    usedSince.set(key, usedSince.get(key) ?? now)
    ages.push(now - (usedSince.get(key) ?? now))
    return key.endsWith(':finalize') ? 'lost' : undefined
  })
  for (let attempt = 0; attempt < 12; attempt++) {
    await work()
    later(5 * HOUR)
  }
  expect([...usedSince.keys()].filter((key) => key.endsWith(':finalize')).length).toBeGreaterThan(1)
  expect(Math.max(...ages)).toBeLessThan(DAY)
})

test('what is paid stays paid when an older answer of the processor comes last', async () => {
  const accountId = await owe('bad')
  await work()
  const { id = '' } = (await invoiceOf(accountId)) ?? {}
  const { processor } = paying.payments
  const older = await processor.readInvoice(paying.fake.state.invoices[0]?.id ?? '')
  if (older === undefined) throw new Error('no invoice')
  paying.fake.pay(older.id, true)
  await hear()
  expect(await invoiceOf(accountId)).toMatchObject({ payment_status: 'paid' })
  for (const stale of [older, { ...older, hasFailedCharge: true }]) {
    await recordInvoiceState(parts(), id, stale)
    expect(await invoiceOf(accountId)).toMatchObject({ payment_status: 'paid', overdue_since: null })
  }
})

test('owners hear once that a payment method or a credit is about to end, however many others do', async () => {
  const { db } = database
  const accountId = await createAccount(db)
  await giveStanding(db, accountId)
  await saveCard(accountId, true)
  const ends = '2026-04-01T00:00:00Z'
  await sql`update payment_customer set default_method_expires_at = ${ends}`.execute(db)
  const others = 600
  await sql`
    insert into credit (id, account_id, label, source, amount_cents, created_at, expires_at)
    select gen_random_uuid(), ${accountId}, 'Credit ' || n, 'staff', 100, '2026-01-01Z', ${ends}
    from generate_series(1, ${others}) n`.execute(db)
  const mails = async () => {
    await upkeep(parts())
    const rows = await db.selectFrom('email_outbox').select(['subject', 'body']).execute()
    const of = (subject: string) => rows.filter((row) => row.subject === subject)
    return [of('Your payment method expires'), of('Your credit expires')] as const
  }
  const counts = async () => (await mails()).map(({ length }) => length)
  cloud.at('2026-03-17T23:59:00Z')
  expect(await counts()).toEqual([0, 0])
  cloud.at('2026-03-18T00:01:00Z')
  expect(await counts()).toEqual([1, 0])
  cloud.at('2026-03-25T00:01:00Z')
  expect(await counts()).toEqual([1, others])
  const [[method], [credit]] = await mails()
  expect(method?.body).toContain('expires at the end of March 2026')
  expect(credit?.body).toMatch(/your credit "Credit \d+", €1\.00, expires on April 1, 2026/)
})

test('hours are removed when nobody needs them, and totals are kept', async () => {
  const { db } = database
  const accountId = await owe()
  const paid = await createAccount(db)
  await sql`
    with resource as (
      insert into billed_resource (account_id, resource_type, uid, resource_id, name)
      values (${paid}, 'server', 'old', 'old', 'old') returning id
    ), life as (
      insert into billed_life (resource, account_id, plan, quantity, since, until, metered_until)
      select id, ${paid}, '', 1, '2026-02-01Z', '2026-02-02Z', '2026-02-02Z' from resource returning id, resource
    )
    insert into usage_hour select resource, '2026-02-01Z', id, 1 from life`.execute(db)
  const kept = async () => {
    await forgetHours(parts())
    const { rows } = await sql<{ account: string; count: number }>`
      select account_id as account, count(*)::integer as count from usage_hour h join billed_life l on l.id = h.life
      where hour < '2026-03-01Z' group by 1`.execute(db)
    return [paid, accountId].map((id) => rows.find(({ account }) => account === id)?.count ?? 0)
  }
  const days = () => db.selectFrom('usage_day').selectAll().execute()
  const used = await days()
  expect(used.length).toBeGreaterThan(0)
  cloud.at('2026-07-01T00:00:00Z')
  expect(await kept()).toEqual([1, 672])
  cloud.at('2026-09-15T00:00:00Z')
  expect(await kept()).toEqual([0, 672])
  await sql`update invoice set payment_status = 'paid'`.execute(db)
  expect(await kept()).toEqual([0, 0])
  expect(await days()).toEqual(used)
})

test('hours of a month that is open stay, and those that nobody will pay for go in the end', async () => {
  const { db } = database
  await owe()
  const count = async () => {
    await forgetHours(parts())
    const { rows } = await sql<{ count: number }>`select count(*)::integer as count from usage_hour`.execute(db)
    return rows[0]?.count ?? 0
  }
  const all = await count()
  cloud.at('2030-01-01T00:00:00Z')
  await sql`update metering set closed_until = '2026-02-01Z'`.execute(db)
  expect(await count()).toBe(all)
  await sql`update metering set closed_until = '2026-03-01Z'`.execute(db)
  expect(await count()).toBe(all - 672)
})
