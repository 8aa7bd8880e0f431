/** Usage of servers: series and monthly transfer, from readings of counters. A reading is added once, regardless of how
 *  often and by how many processes it is reported: only its increase over the newest one of its epoch counts. */
import { type Selectable, sql } from 'kysely'
import {
  addLoads,
  type Counters,
  cpuGrowth,
  growth,
  largest,
  type Load,
  newest,
  NO_COUNTERS,
  NO_LOAD,
  type Point,
  STEPS,
  stepOf,
} from '../../domain/usage/rules.ts'
import type { ServerTransfer } from '../../domain/billing/transfer.ts'
import type { Database, Queries } from '../kit/open.ts'
import type { Tables } from '../tables.ts'
import { deleteWhere, selectWhere } from '../kit/where.ts'

/** Counters of one process of a guest on one node. */
export interface CounterReading {
  /** Identifies one start of the counters: each process has its own. */
  readonly epoch: string
  readonly accountId: string
  readonly serverId: string
  readonly serverUid: string
  readonly serverName: string
  readonly counters: Counters
  /** None is measured when absent. Processor time since the process started. */
  readonly load?: Load
}

/** Adds the increase since the newest reading of each epoch to the series and to the day's transfer. */
export async function recordReadings(db: Database, readings: readonly CounterReading[], now: Date): Promise<void> {
  if (readings.length === 0) return
  await db.transaction().execute(async (tx) => {
    const epochs = [...new Set(readings.map(({ epoch }) => epoch))].sort()
    await tx
      .insertInto('usage_reading')
      .values(epochs.map((epoch) => ({ epoch, seen_at: now })))
      .onConflict((conflict) => conflict.doNothing())
      .execute()
    const known = await tx
      .selectFrom('usage_reading')
      .selectAll()
      .where('epoch', 'in', epochs)
      .orderBy('epoch')
      .forUpdate()
      .execute()
    const before = new Map(known.map((row) => [row.epoch, fromRow(row)]))
    const cpuBefore = new Map(known.map((row) => [row.epoch, row.cpu_milliseconds]))
    const grown: GrownReading[] = []
    for (const reading of readings) {
      const { cpuMilliseconds, memoryUsedBytes } = reading.load ?? NO_LOAD
      const earlierCpu = cpuBefore.get(reading.epoch) ?? null
      cpuBefore.set(reading.epoch, largest(earlierCpu, cpuMilliseconds))
      const load = { cpuMilliseconds: cpuGrowth(earlierCpu, cpuMilliseconds), memoryUsedBytes }
      const earlier = before.get(reading.epoch) ?? NO_COUNTERS
      before.set(reading.epoch, newest(earlier, reading.counters))
      grown.push({ ...reading, added: growth(earlier, reading.counters), load })
    }
    await tx
      .insertInto('usage_reading')
      .values(
        epochs.flatMap((epoch) => {
          const counters = before.get(epoch)
          if (counters === undefined) return []
          return [{ epoch, seen_at: now, ...toRow(counters), cpu_milliseconds: cpuBefore.get(epoch) ?? null }]
        }),
      )
      .onConflict((conflict) =>
        conflict.column('epoch').doUpdateSet((row) => ({
          seen_at: row.ref('excluded.seen_at'),
          cpu_milliseconds: row.ref('excluded.cpu_milliseconds'),
          network_received_bytes: row.ref('excluded.network_received_bytes'),
          network_transmitted_bytes: row.ref('excluded.network_transmitted_bytes'),
          disk_read_bytes: row.ref('excluded.disk_read_bytes'),
          disk_written_bytes: row.ref('excluded.disk_written_bytes'),
          disk_read_operations: row.ref('excluded.disk_read_operations'),
          disk_write_operations: row.ref('excluded.disk_write_operations'),
        })),
      )
      .execute()
    await addToSeries(tx, grown, now)
    await addToTransfer(tx, grown, now)
  })
}

/** With the growth since the reading before it, of its processor time too. */
interface GrownReading extends CounterReading {
  readonly added: Counters
  readonly load: Load
}
type GrownReadings = readonly GrownReading[]

async function addToSeries(tx: Queries, grown: GrownReadings, now: Date): Promise<void> {
  const moved = sumBy(grown, ({ serverUid }) => serverUid).filter(
    ({ added, load }) =>
      Object.values(added).some((count) => count > 0) || load.cpuMilliseconds !== null || load.memoryUsedBytes !== null,
  )
  if (moved.length === 0) return
  const rows = moved.flatMap(({ serverUid, added, load }) =>
    STEPS.map(({ stepSeconds }) => ({
      server_uid: serverUid,
      step_seconds: stepSeconds,
      at: stepOf(now, stepSeconds),
      ...toRow(added),
      cpu_milliseconds: load.cpuMilliseconds,
      memory_used_bytes: load.memoryUsedBytes,
    })),
  )
  await tx
    .insertInto('server_metric')
    .values(rows)
    .onConflict((conflict) =>
      conflict.columns(['server_uid', 'step_seconds', 'at']).doUpdateSet((row) => ({
        cpu_milliseconds: sql<number | null>`coalesce(server_metric.cpu_milliseconds + excluded.cpu_milliseconds,
          server_metric.cpu_milliseconds, excluded.cpu_milliseconds)`,
        memory_used_bytes: sql<number | null>`greatest(server_metric.memory_used_bytes, excluded.memory_used_bytes)`,
        network_received_bytes: row(
          'server_metric.network_received_bytes',
          '+',
          row.ref('excluded.network_received_bytes'),
        ),
        network_transmitted_bytes: row(
          'server_metric.network_transmitted_bytes',
          '+',
          row.ref('excluded.network_transmitted_bytes'),
        ),
        disk_read_bytes: row('server_metric.disk_read_bytes', '+', row.ref('excluded.disk_read_bytes')),
        disk_written_bytes: row('server_metric.disk_written_bytes', '+', row.ref('excluded.disk_written_bytes')),
        disk_read_operations: row('server_metric.disk_read_operations', '+', row.ref('excluded.disk_read_operations')),
        disk_write_operations: row(
          'server_metric.disk_write_operations',
          '+',
          row.ref('excluded.disk_write_operations'),
        ),
      })),
    )
    .execute()
}

async function addToTransfer(tx: Queries, grown: GrownReadings, now: Date): Promise<void> {
  const moved = sumBy(grown, ({ accountId, serverId }) => `${accountId}/${serverId}`).filter(
    ({ added }) => added.networkReceivedBytes > 0 || added.networkTransmittedBytes > 0,
  )
  if (moved.length === 0) return
  await tx
    .insertInto('network_transfer')
    .values(
      moved.map(({ accountId, serverId, serverName, added }) => ({
        account_id: accountId,
        date: dateText(now),
        server_id: serverId,
        server_name: serverName,
        received_bytes: added.networkReceivedBytes,
        transmitted_bytes: added.networkTransmittedBytes,
      })),
    )
    .onConflict((conflict) =>
      conflict.columns(['account_id', 'date', 'server_id']).doUpdateSet((row) => ({
        server_name: row.ref('excluded.server_name'),
        received_bytes: row('network_transfer.received_bytes', '+', row.ref('excluded.received_bytes')),
        transmitted_bytes: row('network_transfer.transmitted_bytes', '+', row.ref('excluded.transmitted_bytes')),
      })),
    )
    .execute()
}

const DATE_LENGTH = 'YYYY-MM-DD'.length

/** One entry for each key, in the order of keys: an upsert may touch a row once, and must lock rows in one order. */
function sumBy(grown: GrownReadings, keyOf: (reading: CounterReading) => string): GrownReadings {
  const sums = new Map<string, GrownReadings[number]>()
  for (const reading of grown) {
    const known = sums.get(keyOf(reading))
    sums.set(
      keyOf(reading),
      known === undefined
        ? reading
        : { ...reading, added: add(known.added, reading.added), load: addLoads(known.load, reading.load) },
    )
  }
  return [...sums].sort(([one], [other]) => (one < other ? -1 : 1)).map(([, reading]) => reading)
}

const add = (one: Counters, other: Counters): Counters => ({
  networkReceivedBytes: one.networkReceivedBytes + other.networkReceivedBytes,
  networkTransmittedBytes: one.networkTransmittedBytes + other.networkTransmittedBytes,
  diskReadBytes: one.diskReadBytes + other.diskReadBytes,
  diskWrittenBytes: one.diskWrittenBytes + other.diskWrittenBytes,
  diskReadOperations: one.diskReadOperations + other.diskReadOperations,
  diskWriteOperations: one.diskWriteOperations + other.diskWriteOperations,
})

/** The series of this step length since the given time, in any order. */
export async function listMetrics(db: Queries, serverUid: string, stepSeconds: number, since: Date): Promise<Point[]> {
  const rows = await selectWhere(db, 'server_metric', { server_uid: serverUid, step_seconds: stepSeconds })
    .selectAll()
    .where('at', '>=', since)
    .execute()
  return rows.map((row) => ({
    at: row.at,
    ...fromRow(row),
    cpuMilliseconds: row.cpu_milliseconds,
    memoryUsedBytes: row.memory_used_bytes,
  }))
}

/** Transfer of the account's servers in the days from `start` until before `end`, by server id. */
export async function listServerTransfers(
  db: Queries,
  accountId: string,
  { start, end }: { readonly start: Date; readonly end: Date },
): Promise<ServerTransfer[]> {
  const rows = await selectWhere(db, 'network_transfer', { account_id: accountId })
    .select(['server_id', sql<string>`(array_agg(server_name order by date desc))[1]`.as('server_name')])
    .select((row) => [
      row.fn.sum<string>('received_bytes').as('received'),
      row.fn.sum<string>('transmitted_bytes').as('transmitted'),
    ])
    .where('date', '>=', dayOf(start))
    .where('date', '<', dayOf(end))
    .groupBy('server_id')
    .orderBy('server_id')
    .execute()
  return rows.map((row) => ({
    serverId: row.server_id,
    serverName: row.server_name,
    receivedBytes: Number(row.received),
    transmittedBytes: Number(row.transmitted),
  }))
}

/** Transfer of the account by day, oldest first; only days with any. Dates are `YYYY-MM-DD`. */
export async function listDailyTransfers(
  db: Queries,
  accountId: string,
  { start, end }: { readonly start: Date; readonly end: Date },
): Promise<{ readonly date: string; readonly receivedBytes: number; readonly transmittedBytes: number }[]> {
  const rows = await selectWhere(db, 'network_transfer', { account_id: accountId })
    .select(sql<string>`to_char(date, 'YYYY-MM-DD')`.as('day'))
    .select((row) => [
      row.fn.sum<string>('received_bytes').as('received'),
      row.fn.sum<string>('transmitted_bytes').as('transmitted'),
    ])
    .where('date', '>=', dayOf(start))
    .where('date', '<', dayOf(end))
    .groupBy('date')
    .orderBy('date')
    .execute()
  return rows.map((row) => ({
    date: row.day,
    receivedBytes: Number(row.received),
    transmittedBytes: Number(row.transmitted),
  }))
}

const dateText = (at: Date): string => at.toISOString().slice(0, DATE_LENGTH)
const dayOf = (at: Date) => sql<Date>`${dateText(at)}::date`

/** Readings are kept for longer than a host may be unreachable and return with the same guest. */
const READING_KEPT_MILLISECONDS = 100 * 86_400_000

/** Deletes what no series needs any longer; returns how many rows. */
export async function pruneUsage(db: Queries, now: Date): Promise<number> {
  let pruned = 0
  for (const { stepSeconds, keptSeconds } of STEPS) {
    const { numDeletedRows } = await deleteWhere(db, 'server_metric', { step_seconds: stepSeconds })
      .where('at', '<', new Date(now.getTime() - keptSeconds * 1_000))
      .executeTakeFirst()
    pruned += Number(numDeletedRows)
  }
  const { numDeletedRows } = await db
    .deleteFrom('usage_reading')
    .where('seen_at', '<', new Date(now.getTime() - READING_KEPT_MILLISECONDS))
    .executeTakeFirst()
  return pruned + Number(numDeletedRows)
}

type CounterRow = Pick<
  Selectable<Tables['usage_reading']>,
  | 'network_received_bytes'
  | 'network_transmitted_bytes'
  | 'disk_read_bytes'
  | 'disk_written_bytes'
  | 'disk_read_operations'
  | 'disk_write_operations'
>

const toRow = (counters: Counters): CounterRow => ({
  network_received_bytes: counters.networkReceivedBytes,
  network_transmitted_bytes: counters.networkTransmittedBytes,
  disk_read_bytes: counters.diskReadBytes,
  disk_written_bytes: counters.diskWrittenBytes,
  disk_read_operations: counters.diskReadOperations,
  disk_write_operations: counters.diskWriteOperations,
})
const fromRow = (row: CounterRow): Counters => ({
  networkReceivedBytes: row.network_received_bytes,
  networkTransmittedBytes: row.network_transmitted_bytes,
  diskReadBytes: row.disk_read_bytes,
  diskWrittenBytes: row.disk_written_bytes,
  diskReadOperations: row.disk_read_operations,
  diskWriteOperations: row.disk_write_operations,
})
