import { beforeEach, describe, expect, test } from 'vitest'
import {
  listDailyTransfers,
  listMetrics,
  listServerTransfers,
  pruneUsage,
  type CounterReading,
  recordReadings,
} from '../../../db/usage/index.ts'
import { monthAround } from '../../../domain/billing/transfer.ts'
import { NO_COUNTERS, seriesOf, stepSecondsOf } from '../../../domain/usage/rules.ts'
import { newUuid, systemRandom } from '../../../kit/sys/random.ts'
import { createAccount } from '../../accounts.ts'
import { useDatabase } from '../../database.ts'

const database = useDatabase()
const now = new Date('2026-03-31T23:59:50Z')
const afterMidnight = new Date('2026-04-01T00:00:10Z')

let accountId: string
let serverUid: string
beforeEach(async () => {
  accountId = await createAccount(database.db)
  serverUid = newUuid(systemRandom)
})

const reading = (transmitted: number, more: Partial<CounterReading> = {}): CounterReading => ({
  epoch: `node-1/${serverUid}/1`,
  accountId,
  serverId: 'web',
  serverUid,
  serverName: 'web',
  counters: {
    ...NO_COUNTERS,
    networkReceivedBytes: 10 * transmitted,
    networkTransmittedBytes: transmitted,
    diskReadBytes: 3,
  },
  ...more,
})
const record = (readings: readonly CounterReading[], at = now) => recordReadings(database.db, readings, at)
const transmittedIn = async (period: '1h' | '30d', at = now) =>
  seriesOf(period, await listMetrics(database.db, serverUid, stepSecondsOf(period), new Date(0)), at).reduce(
    (sum, point) => sum + point.networkTransmittedBytes,
    0,
  )

describe('readings', () => {
  test('count what came since the one before, once', async () => {
    await record([reading(100)])
    await record([reading(100)])
    await record([reading(140)])
    await record([reading(120)]) // late
    expect([await transmittedIn('1h'), await transmittedIn('30d')]).toEqual([140, 140])
    expect(await listServerTransfers(database.db, accountId, monthAround(now))).toEqual([
      { serverId: 'web', serverName: 'web', receivedBytes: 1_400, transmittedBytes: 140 },
    ])
  })

  test('of a new process restart at zero, and those of two nodes add up: a guest that restarted or moved', async () => {
    await record([reading(100)])
    await record([reading(100), reading(30, { epoch: `node-1/${serverUid}/2` })])
    await record([reading(50, { epoch: `node-2/${serverUid}/2` })])
    expect(await transmittedIn('1h')).toBe(180)
  })

  test('at the same moment by several processes are added once', async () => {
    await Promise.all(
      Array.from({ length: 10 }, () => record([reading(100), reading(7, { epoch: `node-1/${serverUid}/2` })])),
    )
    expect(await transmittedIn('1h')).toBe(107)
  })

  test('belong to the day and month in which they came; deleted servers stay in the bill', async () => {
    await record([reading(100)])
    await record([reading(130)], afterMidnight)
    expect(await listDailyTransfers(database.db, accountId, monthAround(now))).toEqual([
      { date: '2026-03-31', receivedBytes: 1_000, transmittedBytes: 100 },
    ])
    expect(await listDailyTransfers(database.db, accountId, monthAround(afterMidnight))).toEqual([
      { date: '2026-04-01', receivedBytes: 300, transmittedBytes: 30 },
    ])
  })

  test('hold counts beyond 32 bits', async () => {
    await record([reading(2 ** 45)])
    expect((await listServerTransfers(database.db, accountId, monthAround(now)))[0]).toMatchObject({
      transmittedBytes: 2 ** 45,
      receivedBytes: 10 * 2 ** 45,
    })
  })
})

describe('the load of a server', () => {
  const loadIn = async (at = now) => {
    const points = seriesOf('1h', await listMetrics(database.db, serverUid, 60, new Date(0)), at)
    return points.map(({ cpuMilliseconds, memoryUsedBytes }) => [cpuMilliseconds, memoryUsedBytes]).slice(-2)
  }
  const loaded = (cpuMilliseconds: number | null, memoryUsedBytes: number | null, more: Partial<CounterReading> = {}) =>
    reading(100, { load: { cpuMilliseconds, memoryUsedBytes }, ...more })
  const later = new Date(now.getTime() + 60_000)

  test('is the processor time since the reading before, once, and the most memory of a step', async () => {
    await record([loaded(90_000, 500)])
    expect(await loadIn(), 'a first reading is as old as its process').toEqual([
      [null, null],
      [null, 500],
    ])
    await record([loaded(91_500, 700)])
    await record([loaded(91_500, 600)])
    await record([loaded(91_000, null)]) // late
    await record([loaded(92_000, 100)], later)
    expect(await loadIn(later)).toEqual([
      [1_500, 700],
      [500, 100],
    ])
  })

  test('starts again with another process; while a guest moves, both count', async () => {
    const other = { epoch: `node-2/${serverUid}/2` }
    await record([loaded(1_000, 500), loaded(10, 300, other)])
    await record([loaded(1_200, 500), loaded(60, 800, other)])
    expect((await loadIn()).at(-1)).toEqual([250, 800])
  })

  test('of hosts and processes that do not measure it is unknown, and adds nothing later', async () => {
    await record([reading(100)])
    expect((await loadIn()).at(-1)).toEqual([null, null])
    await record([loaded(5_000_000, null)])
    expect((await loadIn()).at(-1)).toEqual([null, null])
    await record([reading(120)])
    await record([loaded(5_000_700, null)])
    expect((await loadIn()).at(-1)).toEqual([700, null])
  })
})

test('steps are deleted when no series shows them; the transfer stays', async () => {
  await record([reading(100)])
  const inTwoHours = new Date(now.getTime() + 7_200_000)
  await pruneUsage(database.db, inTwoHours)
  expect(await transmittedIn('1h')).toBe(0)
  expect(await transmittedIn('30d', inTwoHours)).toBe(100)
  await pruneUsage(database.db, new Date(now.getTime() + 40 * 86_400_000))
  expect(await listMetrics(database.db, serverUid, stepSecondsOf('30d'), new Date(0))).toEqual([])
  expect(await listServerTransfers(database.db, accountId, monthAround(now))).toHaveLength(1)
  await record([reading(101)])
  expect(await transmittedIn('1h')).toBe(1)
})
