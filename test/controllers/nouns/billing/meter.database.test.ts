import { sql } from 'kysely'
import { beforeEach, expect, test } from 'vitest'
import { meterBatch, readMetering, recordSeen } from '../../../../db/billing/index.ts'
import { createAccount } from '../../../accounts.ts'
import { useDatabase } from '../../../database.ts'
import { hoursOf, type MeteredCloud, openMeteredCloud } from './metered-cloud.ts'

const database = useDatabase()
let cloud: MeteredCloud
let accountId: string

beforeEach(async () => {
  const { db } = database
  await sql`truncate price, billed_resource, billed_life, usage_hour, usage_day, metering`.execute(db)
  accountId = await createAccount(db)
  cloud = openMeteredCloud(db)
  cloud.plan('tiny', 100)
  cloud.plan('big', 400)
})

const hours = () => hoursOf(database.db, accountId)
const range = (day: string, from: number, to: number, rest: string): string[] =>
  Array.from({ length: to - from + 1 }, (_, index) => `${day}T${String(from + index).padStart(2, '0')} ${rest}`)

/** The sums by day are those of the hours. */
const daysDiffer = async () =>
  (
    await sql<object>`
      select coalesce(d.life, s.life) from (select * from usage_day where hours > 0) d full join (
        select life, monthly_cents, (hour at time zone 'UTC')::date as date, count(*) as hours,
          min(extract(hour from hour at time zone 'UTC')) as first_hour
        from usage_hour group by 1, 2, 3
      ) s using (life, monthly_cents, date)
      where d.hours is distinct from s.hours or d.first_hour is distinct from s.first_hour`.execute(database.db)
  ).rows

test('a resource has one row for each clock hour that it existed in, however often the meter runs', async () => {
  cloud.at('2026-03-01T10:59:59Z')
  cloud.server({ accountId, plan: 'tiny' })
  await cloud.meter()
  expect(await hours()).toEqual([])
  cloud.at('2026-03-01T11:01:59Z')
  await cloud.meter()
  expect(await hours()).toEqual([])
  cloud.at('2026-03-01T11:02:00Z')
  await cloud.meter()
  await cloud.meter()
  expect(await hours()).toEqual(['2026-03-01T10 server tiny 100'])
  expect((await readMetering(database.db)).meteredThrough).toEqual(new Date('2026-03-01T11:00:00Z'))
  cloud.at('2026-03-01T14:30:00Z')
  cloud.restart()
  await Promise.all([cloud.meter(), cloud.meter()])
  expect(await hours()).toEqual(range('2026-03-01', 10, 13, 'server tiny 100'))
  expect(await daysDiffer()).toEqual([])
})

test('a clock that goes back repeats nothing and loses nothing', async () => {
  cloud.at('2026-03-01T10:10:00Z')
  cloud.server({ accountId, plan: 'tiny' })
  await cloud.meter()
  cloud.at('2026-03-01T12:10:00Z')
  await cloud.meter()
  cloud.at('2026-03-01T09:10:00Z')
  await cloud.meter()
  cloud.at('2026-03-01T13:10:00Z')
  await cloud.meter()
  expect(await hours()).toEqual(range('2026-03-01', 10, 12, 'server tiny 100'))
})

test('what came and went between two looks costs its hour, and deleted again within the hour no other', async () => {
  cloud.at('2026-03-01T10:10:00Z')
  await cloud.meter()
  cloud.at('2026-03-01T10:10:05Z')
  const server = cloud.server({ accountId, plan: 'tiny' })
  cloud.at('2026-03-01T10:10:09Z')
  await server.delete()
  cloud.at('2026-03-01T12:10:00Z')
  await cloud.meter()
  expect(await hours()).toEqual(['2026-03-01T10 server tiny 100'])
})

test('what is deleted in the first instant of an hour does not cost it', async () => {
  cloud.at('2026-03-01T10:10:00Z')
  const server = cloud.server({ accountId, plan: 'tiny' })
  await cloud.meter()
  cloud.at('2026-03-01T12:00:00Z')
  await server.delete()
  cloud.at('2026-03-01T15:00:00Z')
  await cloud.meter()
  expect(await hours()).toEqual(range('2026-03-01', 10, 11, 'server tiny 100'))
})

test('a late end removes the hours after it, but for those of a closed month', async () => {
  cloud.at('2026-03-31T20:10:00Z')
  const [late, later] = [cloud.server({ accountId, plan: 'tiny' }), cloud.server({ accountId, plan: 'big' })]
  await cloud.meter()
  cloud.at('2026-04-01T04:10:00Z')
  await cloud.meter()
  cloud.at('2026-03-31T22:30:00Z')
  await late.delete()
  expect((await hours()).filter((hour) => hour.includes('tiny'))).toEqual(
    range('2026-03-31', 20, 22, 'server tiny 100'),
  )
  await sql`update metering set closed_until = '2026-04-01Z'`.execute(database.db)
  await later.delete()
  expect((await hours()).filter((hour) => hour.includes('big'))).toEqual(range('2026-03-31', 20, 23, 'server big 400'))
  expect(await daysDiffer()).toEqual([])
  cloud.at('2026-04-01T08:10:00Z')
  await cloud.meter()
  expect((await hours()).length).toBe(7)
})

test('of several plans or sizes in an hour the most expensive counts, in any order', async () => {
  cloud.price('storage', 'standard', 5_000, '2026-01-01T00:00:00Z')
  cloud.at('2026-03-01T09:30:00Z')
  const storage = cloud.storage({ accountId, sizeGibibytes: 10 })
  const shrunk = cloud.server({ accountId, plan: 'big' })
  await cloud.meter()
  cloud.at('2026-03-01T10:05:00Z')
  storage.change({ sizeGibibytes: 100 })
  shrunk.change({ plan: 'tiny' })
  await cloud.meter()
  cloud.at('2026-03-01T11:59:00Z')
  shrunk.change({ plan: 'big' })
  await cloud.meter()
  await shrunk.delete()
  cloud.at('2026-03-01T12:10:00Z')
  await cloud.meter()
  expect((await hours()).toSorted()).toEqual([
    '2026-03-01T09 server big 400',
    '2026-03-01T09 storage standard 50',
    '2026-03-01T10 server big 400',
    '2026-03-01T10 storage standard 500',
    '2026-03-01T11 server big 400',
    '2026-03-01T11 storage standard 500',
  ])
  expect(await daysDiffer()).toEqual([])
})

test('an hour of object storage costs the most that was measured in it, and never what another held', async () => {
  cloud.price('object_storage', '', 1_000, '2026-01-01T00:00:00Z')
  cloud.at('2026-03-01T09:10:00Z')
  const storage = cloud.objectStorage({ accountId })
  const found = async (measuredAt: string, gibibytes: number, highest = gibibytes) => {
    const bytes = gibibytes * 1024 ** 3
    storage.change({ measured: { measuredAt, bytes, highestBytes: highest * 1024 ** 3 } })
    cloud.at(new Date(Date.parse(measuredAt) + 20_000))
    await cloud.meter()
  }
  await found('2026-03-01T09:12:00Z', 10)
  await found('2026-03-01T09:40:00Z', 2)
  // It came and went between two looks: the store remembers it.
  await found('2026-03-01T10:30:00Z', 2, 50)
  await found('2026-03-01T10:59:30Z', 3)
  await found('2026-03-01T11:00:30Z', 3)
  await found('2026-03-01T11:20:00Z', 4)
  // Nobody looks for two hours: they cost what was there last, not what was highest.
  await found('2026-03-01T11:30:00Z', 1)
  cloud.at('2026-03-01T12:01:00Z')
  await cloud.meter()
  cloud.at('2026-03-01T13:30:00Z')
  await cloud.meter()
  await found('2026-03-01T14:00:10Z', 0)
  cloud.at('2026-03-01T15:10:00Z')
  await cloud.meter()
  expect(await hours()).toEqual([
    '2026-03-01T09 object_storage 10',
    '2026-03-01T10 object_storage 50',
    '2026-03-01T11 object_storage 4',
    '2026-03-01T12 object_storage 1',
    '2026-03-01T13 object_storage 1',
  ])
  expect(await daysDiffer()).toEqual([])
})

test('an hour that was metered is corrected when a dearer plan in it is seen later', async () => {
  cloud.at('2026-03-01T10:10:00Z')
  const server = cloud.server({ accountId, plan: 'tiny' })
  await cloud.meter()
  cloud.at('2026-03-01T12:10:00Z')
  await cloud.meter()
  expect(await hours()).toEqual(range('2026-03-01', 10, 11, 'server tiny 100'))
  const seen = { accountId, resourceType: 'server', uid: server.uid, resourceId: server.name, name: server.name }
  const life = { plan: 'big', quantity: 1, since: new Date('2026-03-01T10:10:00Z'), until: undefined }
  const changedAt = new Date('2026-03-01T11:30:00Z')
  await database.db.transaction().execute((tx) => recordSeen(tx, [{ ...seen, ...life, changedAt }]))
  server.change({ plan: 'big' })
  cloud.at('2026-03-01T13:10:00Z')
  await cloud.meter()
  expect(await hours()).toEqual(['2026-03-01T10 server tiny 100', ...range('2026-03-01', 11, 12, 'server big 400')])
  expect(await daysDiffer()).toEqual([])
})

test('another plan counts from the hour in which it came', async () => {
  cloud.at('2026-03-01T10:10:00Z')
  const server = cloud.server({ accountId, plan: 'tiny' })
  await cloud.meter()
  cloud.at('2026-03-01T11:20:00Z')
  server.change({ plan: 'big' })
  await cloud.meter()
  cloud.at('2026-03-01T11:40:00Z')
  server.change({ plan: 'tiny' })
  await cloud.meter()
  cloud.at('2026-03-01T13:00:00Z')
  server.change({ plan: 'big' })
  await cloud.meter()
  cloud.at('2026-03-01T14:10:00Z')
  await cloud.meter()
  expect(await hours()).toEqual([
    '2026-03-01T10 server tiny 100',
    '2026-03-01T11 server big 400',
    '2026-03-01T12 server tiny 100',
    '2026-03-01T13 server big 400',
  ])
  expect(await daysDiffer()).toEqual([])
})

test('an hour costs what is asked at its start, or when the resource is made', async () => {
  cloud.price('storage', 'standard', 5_000, '2026-01-01T00:00:00Z')
  const mistake = cloud.price('storage', 'standard', 1, '2026-03-01T12:00:00Z')
  cloud.price('storage', 'standard', 6_000, '2026-03-01T11:30:00Z')
  cloud.at('2026-03-01T10:10:00Z')
  cloud.storage({ accountId, sizeGibibytes: 10 })
  await cloud.meter()
  cloud.dropPrice(mistake)
  cloud.at('2026-03-01T11:40:00Z')
  cloud.storage({ accountId, sizeGibibytes: 1 })
  await cloud.meter()
  cloud.at('2026-03-01T13:10:00Z')
  await cloud.meter()
  expect((await hours()).toSorted()).toEqual([
    '2026-03-01T10 storage standard 50',
    '2026-03-01T11 storage standard 50',
    '2026-03-01T11 storage standard 6',
    '2026-03-01T12 storage standard 6',
    '2026-03-01T12 storage standard 60',
  ])
})

test('what has no price costs nothing, and a plan that becomes dearer costs more from the next hour on', async () => {
  cloud.at('2026-03-01T10:10:00Z')
  cloud.storage({ accountId, sizeGibibytes: 10 })
  cloud.server({ accountId, plan: 'tiny' })
  await cloud.meter()
  cloud.at('2026-03-01T11:20:00Z')
  cloud.plan('tiny', 150)
  await cloud.meter()
  cloud.at('2026-03-01T13:10:00Z')
  await cloud.meter()
  expect(await hours()).toEqual([...range('2026-03-01', 10, 11, 'server tiny 100'), '2026-03-01T12 server tiny 150'])
})

test('a boot storage costs what it has beyond the plan, an address as long as it is there', async () => {
  cloud.price('storage', 'standard', 5_000, '2026-01-01T00:00:00Z')
  cloud.price('public_ipv4', '', 60_000, '2026-01-01T00:00:00Z')
  cloud.at('2026-03-01T10:10:00Z')
  const server = cloud.server({ accountId, plan: 'tiny', publicIpv4: '192.0.2.1' })
  const boot = cloud.storage({ accountId, sizeGibibytes: 1, bootOf: server.name })
  await cloud.meter()
  cloud.at('2026-03-01T11:30:00Z')
  await cloud.meter()
  cloud.at('2026-03-01T11:59:00Z')
  boot.change({ sizeGibibytes: 3 })
  server.change({ publicIpv4: null })
  await cloud.meter()
  cloud.at('2026-03-01T13:10:00Z')
  await cloud.meter()
  server.vanish()
  cloud.at('2026-03-01T15:10:00Z')
  await cloud.meter()
  expect((await hours()).filter((hour) => !hour.includes('server'))).toEqual([
    '2026-03-01T10 public_ipv4 60',
    '2026-03-01T11 public_ipv4 60',
    '2026-03-01T11 storage standard 10',
    '2026-03-01T12 storage standard 10',
    '2026-03-01T13 storage standard 10',
  ])
  expect((await hours()).filter((hour) => hour.includes('server')).length).toBe(4)
})

test('a floating IP costs from its allocation to its release, wherever it leads', async () => {
  cloud.price('floating_ip', '', 60_000, '2026-01-01T00:00:00Z')
  cloud.at('2026-03-01T10:10:00Z')
  const address = cloud.floatingIp({ accountId, address: '192.0.2.1' })
  await cloud.meter()
  cloud.at('2026-03-01T12:30:00Z')
  await address.delete()
  cloud.at('2026-03-01T15:10:00Z')
  await cloud.meter()
  expect(await hours()).toEqual(range('2026-03-01', 10, 12, 'floating_ip 60'))
})

test('edges, load balancers and their addresses cost what operators ask, once they are claimed', async () => {
  for (const [type, millicents] of [
    ['edge', 100_000],
    ['load_balancer', 700_000],
    ['public_ipv4', 60_000],
  ] as const)
    cloud.price(type, '', millicents, '2026-01-01T00:00:00Z')
  cloud.at('2026-03-01T10:10:00Z')
  const machine = cloud.server({ accountId, plan: 'tiny', publicIpv4: '192.0.2.1' })
  const edge = cloud.edge({ accountId })
  const balancer = cloud.loadBalancer({ accountId, publicIpv4: '192.0.2.2' })
  const refused = [cloud.edge({ accountId }), cloud.loadBalancer({ accountId })]
  edge.change({ plan: 'tiny' })
  balancer.change({ plan: 'tiny' })
  await cloud.meter()
  cloud.at('2026-03-01T11:30:00Z')
  for (const each of [machine, edge, balancer, ...refused]) await each.delete()
  cloud.at('2026-03-01T15:10:00Z')
  await cloud.meter()
  expect((await hours()).toSorted()).toEqual(
    [10, 11].flatMap((hour) =>
      ['edge 100', 'load_balancer 700', 'public_ipv4 60', 'public_ipv4 60', 'server tiny 100'].map(
        (rest) => `2026-03-01T${hour} ${rest}`,
      ),
    ),
  )
})

test('meters that work at the same time share the work', async () => {
  cloud.at('2026-03-01T10:10:00Z')
  for (let count = 0; count < 20; count++) cloud.server({ accountId, plan: 'tiny' })
  await cloud.meter()
  const through = new Date('2026-03-03T12:00:00Z')
  const work = async () => {
    while ((await meterBatch(database.db, through, 3)) > 0);
  }
  await Promise.all([work(), work(), work(), work()])
  await work()
  expect((await hours()).length).toBe(20 * 50)
  expect(await daysDiffer()).toEqual([])
})

test('what is made while nobody looks costs from then on; what was there before, from the first look', async () => {
  cloud.at('2026-03-01T08:10:00Z')
  cloud.server({ accountId, plan: 'big' })
  cloud.at('2026-03-01T10:10:00Z')
  await cloud.meter()
  cloud.at('2026-03-01T11:10:00Z')
  cloud.server({ accountId, plan: 'tiny' })
  cloud.restart()
  cloud.at('2026-03-01T13:10:00Z')
  await cloud.meter()
  expect(await hours()).toEqual([
    '2026-03-01T10 server big 400',
    '2026-03-01T11 server big 400',
    '2026-03-01T11 server tiny 100',
    '2026-03-01T12 server big 400',
    '2026-03-01T12 server tiny 100',
  ])
})
