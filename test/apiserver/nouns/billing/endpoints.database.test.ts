import { afterAll, beforeAll, expect, test } from 'vitest'
import { meterBatch, recordCurrentPrice, recordMetered, recordSeen } from '../../../../db/billing/index.ts'
import { recordReadings } from '../../../../db/usage/index.ts'
import { amountAfter } from '../../../../domain/billing/rules.ts'
import { NO_COUNTERS } from '../../../../domain/usage/rules.ts'
import { systemClock } from '../../../../kit/sys/clock.ts'
import { newUuid, systemRandom } from '../../../../kit/sys/random.ts'
import { useDatabase } from '../../../database.ts'
import { type Cloud, openCloud, type Person } from '../../cloud.ts'

const HOUR = 3_600_000
const DAY = 24 * HOUR
const database = useDatabase()
let cloud: Cloud
let ada: Person
let bob: Person
const now = systemClock.now()
const hour = new Date(Math.floor(now.getTime() / HOUR) * HOUR)

beforeAll(async () => {
  cloud = await openCloud(database.db)
  ada = await cloud.signUp('ada@example.com')
  bob = await cloud.signUp('bob@example.com')
})
afterAll(() => cloud.close())

const seen = (accountId: string, name: string, since: Date, until?: Date) => ({
  accountId,
  resourceType: 'server',
  uid: newUuid(systemRandom),
  resourceId: name,
  name,
  plan: 'tiny',
  quantity: 1,
  since,
  changedAt: since,
  until,
})

test('the summary of an account that has nothing is empty but for its credit', async () => {
  const read = await bob.send('GET', '/v1/usage/summary')
  expect(read.status, read.text).toBe(200)
  expect(read.body).toMatchObject({
    currency: 'eur',
    metered_through: null,
    month_to_date_cents: 0,
    estimated_month_cents: 0,
    resources: [],
    credit_balance_cents: 24_900,
  })
  expect(read.body['credit_next_expiry'] > now.toISOString()).toBe(true)
  expect(read.body['daily'].length).toBe(90)
  expect(read.body['daily'].at(-1)).toEqual({ date: now.toISOString().slice(0, 10), amount_cents: 0 })
  expect((await bob.send('GET', '/v1/usage/billing-log')).body).toEqual({ items: [], next_cursor: null })
})

test('summary and log agree to the cent, page by page, and are nobody else’s', async () => {
  const { db } = database
  await recordCurrentPrice(db, { resourceType: 'server', plan: 'tiny' }, 49_900_000, now)
  await db
    .transaction()
    .execute((tx) =>
      recordSeen(tx, [
        seen(ada.accountId, 'old', new Date(hour.getTime() - 100 * DAY)),
        seen(ada.accountId, 'gone', new Date(hour.getTime() - 50 * DAY), new Date(hour.getTime() - 40 * DAY)),
      ]),
    )
  while ((await meterBatch(db, hour)) > 0);
  await recordMetered(db, hour)
  const summary = await ada.send('GET', '/v1/usage/summary')
  expect(summary.status, summary.text).toBe(200)
  const monthStart = new Date(summary.body['period_start'])
  const monthHours = (hour.getTime() - monthStart.getTime()) / HOUR
  expect(summary.body).toMatchObject({
    period_end: new Date(Date.UTC(now.getUTCFullYear(), now.getUTCMonth() + 1)).toISOString(),
    metered_through: hour.toISOString(),
    month_to_date_cents: amountAfter(Math.min(730, monthHours), 49_900),
    estimated_month_cents: amountAfter(
      Math.min(730, (Date.parse(summary.body['period_end']) - monthStart.getTime()) / HOUR),
      49_900,
    ),
    resources: [{ resource_id: 'old', hours: monthHours, cap_cents: 49_900, is_active: true }],
  })

  const items: { date: string; resource_id: string; hours: number; amount_cents: number }[] = []
  let path = '/v1/usage/billing-log?limit=30'
  for (;;) {
    const page = await ada.send('GET', path)
    expect(page.status, page.text).toBe(200)
    items.push(...page.body['items'])
    if (page.body['next_cursor'] === null) break
    path = `/v1/usage/billing-log?limit=30&cursor=${page.body['next_cursor']}`
  }
  const keys = items.map(({ date, resource_id }) => `${date} ${resource_id}`)
  expect(new Set(keys).size).toBe(keys.length)
  expect(items.map(({ date }) => date)).toEqual(
    items
      .map(({ date }) => date)
      .toSorted()
      .toReversed(),
  )
  expect(items.reduce((sum, { hours }) => sum + hours, 0)).toBe(110 * 24)
  const ofMonth = items.filter(({ date }) => date >= summary.body['period_start'].slice(0, 10))
  expect(ofMonth.reduce((sum, each) => sum + each.amount_cents, 0)).toBe(summary.body['month_to_date_cents'])
  for (const { date, amount_cents } of summary.body['daily'])
    expect([
      date,
      items.filter((item) => item.date === date).reduce((sum, item) => sum + item.amount_cents, 0),
    ]).toEqual([date, amount_cents])
  expect((await bob.send('GET', '/v1/usage/summary')).body['resources']).toEqual([])
  expect((await bob.send('GET', path)).status).toBe(400)
})

test('traffic beyond the allowance is a line of the month, as the transfer of the month says', async () => {
  await recordReadings(
    database.db,
    [
      {
        epoch: 'n/1',
        accountId: bob.accountId,
        serverId: 'web',
        serverUid: newUuid(systemRandom),
        serverName: 'web',
        counters: { ...NO_COUNTERS, networkTransmittedBytes: 12 * 2 ** 40 + 7 },
      },
    ],
    systemClock.now(),
  )
  const transfer = await bob.send('GET', '/v1/usage/network-transfer')
  const { body } = await bob.send('GET', '/v1/usage/summary')
  expect(body['resources']).toMatchObject([
    {
      resource_type: 'network_transfer',
      resource_id: 'web',
      hours: 0,
      cap_cents: 0,
      amount_cents: transfer.body['total_amount_cents'],
    },
  ])
  expect((await bob.send('GET', '/v1/usage/billing-log')).body['items']).toMatchObject([
    { resource_type: 'network_transfer', amount_cents: transfer.body['total_amount_cents'] },
  ])
})

test('invoices are listed newest first, and are nobody else’s', async () => {
  const { db } = database
  for (const period of ['2025-11', '2025-12'])
    await db
      .insertInto('invoice')
      .values({
        id: newUuid(systemRandom),
        account_id: ada.accountId,
        period,
        currency: 'eur',
        period_start: now,
        period_end: now,
        created_at: now,
        total_cents: 500,
        credit_applied_cents: 100,
        payment_status: 'unbilled',
      })
      .execute()
  const first = await ada.send('GET', '/v1/invoices?limit=1')
  expect(first.body['items']).toMatchObject([
    { period: '2025-12', total_cents: 500, credit_applied_cents: 100, amount_due_cents: 400, lines: [] },
  ])
  const second = await ada.send('GET', `/v1/invoices?limit=1&cursor=${first.body['next_cursor']}`)
  expect([second.body['items'][0].period, second.body['next_cursor']]).toEqual(['2025-11', null])
  expect((await bob.send('GET', '/v1/invoices')).body['items']).toEqual([])
})
