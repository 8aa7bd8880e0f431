import { afterAll, beforeAll, expect, test } from 'vitest'
import { BILLABLES } from '../../../../controllers/nouns/billing/billables.ts'
import { invoiceMonths } from '../../../../controllers/nouns/billing/invoicing.ts'
import { recordSeen } from '../../../../db/billing/index.ts'
import { unitOf } from '../../../../domain/billing/units.ts'
import { silentLog as log } from '../../../../kit/sys/log.ts'
import { newUuid, systemRandom as random } from '../../../../kit/sys/random.ts'
import { type MeteredCloud, openMeteredCloud } from '../../../controllers/nouns/billing/metered-cloud.ts'
import { useDatabase } from '../../../database.ts'
import { type Cloud, openCloud, type Person } from '../../cloud.ts'

interface Line {
  readonly resource_type: string
  readonly plan: string
  readonly unit: string
  readonly monthly_millicents: number
  readonly free_units: number
  readonly valid_from: string
}

const database = useDatabase()
let cloud: Cloud
let metered: MeteredCloud
let ada: Person

beforeAll(async () => {
  cloud = await openCloud(database.db)
  ada = await cloud.signUp('ada@example.com')
  metered = openMeteredCloud(database.db)
})
afterAll(() => cloud.close())

const BEGINNING = '1970-01-01T00:00:00.000Z'
const GIBIBYTE = 2 ** 30
/** Everything that the meter records, once. */
const TYPES = [...new Set(BILLABLES.map(({ resourceType }) => resourceType))]
const PLANS: Readonly<Record<string, string>> = { server: 'tiny', storage: 'standard' }
const planOf = (type: string): string => PLANS[type] ?? ''
const quantityOf = (type: (typeof TYPES)[number]): number => (unitOf(type) === 'gibibyte' ? 7 : 1)

async function listed(): Promise<readonly Line[]> {
  const reply = await ada.send('GET', '/v1/prices')
  expect(reply.status, reply.text).toBe(200)
  expect(reply.body['next_cursor']).toBeNull()
  return reply.body['items']
}
const linesOf = async (type: string, plan = planOf(type)): Promise<readonly Line[]> =>
  (await listed()).filter((line) => line.resource_type === type && line.plan === plan)

test('everything that the meter records costs in an invoice what its line says', async () => {
  metered.at('2025-03-01T00:00:00Z')
  metered.plan('tiny', 1_234)
  for (const [index, type] of TYPES.filter((each) => each !== 'server').entries())
    metered.price(type, planOf(type), 1_000 + 137 * index, '2025-01-01T00:00:00Z')
  await metered.meter()
  const since = new Date('2025-03-01T00:00:00Z')
  await database.db.transaction().execute((tx) =>
    recordSeen(
      tx,
      TYPES.map((resourceType) => ({
        accountId: ada.accountId,
        resourceType,
        uid: newUuid(random),
        resourceId: newUuid(random),
        name: resourceType,
        plan: planOf(resourceType),
        quantity: quantityOf(resourceType),
        since,
        changedAt: since,
        until: new Date('2025-04-01T00:00:00Z'),
      })),
    ),
  )
  const transmitted = 1_024 + 250
  await database.db
    .insertInto('network_transfer')
    .values({
      account_id: ada.accountId,
      server_id: 's1',
      server_name: 'web',
      date: '2025-03-09',
      received_bytes: 0,
      transmitted_bytes: transmitted * GIBIBYTE,
    })
    .execute()
  metered.at('2025-04-02T02:00:00Z')
  await metered.meter()
  await invoiceMonths({ clock: metered.clock, db: database.db, log, random })

  const [invoice] = (await ada.send('GET', '/v1/invoices')).body['items']
  const billed: readonly { kind: string; resource_type: string; amount_cents: number }[] = invoice.lines
  const prices = await listed()
  for (const { resource_type: type, amount_cents: cents } of billed.filter(({ kind }) => kind === 'usage')) {
    const line = prices.find((each) => each.resource_type === type && each.plan === planOf(type))
    const quantity = type === 'network_transfer' ? transmitted : quantityOf(type as (typeof TYPES)[number])
    const units = quantity - (line?.free_units ?? 0)
    expect.soft(Math.round(((line?.monthly_millicents ?? Number.NaN) * units) / 1_000), type).toBe(cents)
  }
  expect(new Set(billed.map((each) => each.resource_type).filter((type) => type !== ''))).toEqual(
    new Set([...TYPES, 'network_transfer']),
  )
})

test('a line says its unit, and since when it is valid', async () => {
  expect(await linesOf('server')).toEqual([
    {
      resource_type: 'server',
      plan: 'tiny',
      unit: 'each',
      monthly_millicents: 1_234_000,
      free_units: 0,
      valid_from: BEGINNING,
    },
  ])
  expect(await linesOf('storage')).toMatchObject([{ unit: 'gibibyte', valid_from: '2025-01-01T00:00:00.000Z' }])
  expect(await linesOf('network_transfer')).toEqual([
    {
      resource_type: 'network_transfer',
      plan: '',
      unit: 'gibibyte_transmitted',
      monthly_millicents: 1_000,
      free_units: 1_024,
      valid_from: BEGINNING,
    },
  ])
})

test('announced prices are listed, replaced ones are not, and prices of nothing are left out', async () => {
  const [before] = await linesOf('snapshot')
  metered.price('snapshot', '', 9_000, '2025-06-01T00:00:00Z')
  metered.price('snapshot', '', 9_999, '2999-01-01T00:00:00Z')
  metered.price('snapshott', '', 1, '2025-01-01T00:00:00Z')
  await metered.meter()
  expect(before?.monthly_millicents).not.toBe(9_000)
  expect((await linesOf('snapshot')).map((line) => [line.monthly_millicents, line.valid_from])).toEqual([
    [9_000, '2025-06-01T00:00:00.000Z'],
    [9_999, '2999-01-01T00:00:00.000Z'],
  ])
  expect(await linesOf('snapshott')).toEqual([])
  metered.plan('tiny', 2_000)
  await metered.meter()
  expect((await linesOf('server')).map((line) => line.monthly_millicents)).toEqual([2_000_000])
})
