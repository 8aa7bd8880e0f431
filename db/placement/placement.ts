/** Room on nodes. A guest's claim is one row; taking it is one conditional update of its node, and deleting the row
 *  gives the
 *  room back, so that neither can happen twice. What a node offers is mirrored by `db/placement/nodes.ts`. */
import { sql, type Transaction } from 'kysely'
import { type Candidate, type Demand, rankNodes, type Room, type Spread, times } from '../../domain/placement.ts'
import { type Problem, unavailable } from '../../domain/problem.ts'
import { listBestNodes, toCandidate } from './best-nodes.ts'
import type { Queries } from '../open.ts'
import { lockApartness } from '../server-group/index.ts'
import type { Tables } from '../tables.ts'

export interface Placement extends Room {
  readonly accountId: string
  readonly serverId: string
  readonly zone: string
  readonly node: string
}

interface RoomColumns {
  readonly cores: number
  readonly memory_mebibytes: number
  readonly storage_gibibytes: number
}

/** The room that a row speaks of. */
export const roomOf = ({ cores, memory_mebibytes, storage_gibibytes }: RoomColumns): Room => ({
  cores,
  memoryMebibytes: memory_mebibytes,
  storageGibibytes: storage_gibibytes,
})
/** The room as columns of a row. */
export const columnsOf = (room: Room): RoomColumns => ({
  cores: room.cores,
  memory_mebibytes: room.memoryMebibytes,
  storage_gibibytes: room.storageGibibytes,
})

/** How often the candidates are read again after all of them were taken by others in the meantime. */
const PASSES_MAXIMUM = 5

/** A demand of a server, who may be of a group. */
export interface ServerDemandForRoom extends Demand {
  readonly serverId: string
  readonly serverGroupId?: string | undefined
  /** Of the zone; groups that span zones are of a region. */
  readonly region?: string | undefined
}

/** Claims room for the server on the best node, once: an earlier claim of the server is the answer as it stands.
 *  Throws the Problems `no_capacity` and `no_distinct_failure_domain` (503) when no node can hold it, and 400 for a
 *  group that is not there. */
export async function claimPlacement(
  tx: Transaction<Tables>,
  demand: ServerDemandForRoom,
  now: Date,
): Promise<Placement> {
  const placement = (await findPlacement(tx, demand)) ?? (await claimFirstPlacements(tx, [demand], now))[0]
  if (placement === undefined) throw new Error('a server was left out')
  return placement
}

/** The same for servers that have no room yet and differ in their ids only; a server of a group comes alone. Several
 *  get room on one node, the one that each would
 *  get in its turn, or are refused together. */
export async function claimFirstPlacements(
  tx: Transaction<Tables>,
  demands: readonly ServerDemandForRoom[],
  now: Date,
): Promise<readonly Placement[]> {
  const [first] = demands
  if (first === undefined) return []
  const { serverGroupId: groupId, accountId } = first
  const apartness = groupId === undefined ? undefined : await lockApartness(tx, { accountId, groupId }, first)
  const candidates = (wanted: Demand) => listBestNodes(tx, wanted)
  const node =
    demands.length === 1
      ? await claimBestRoom(tx, { ...first, apartness }, candidates)
      : await takeRoomTogether(tx, first, demands.length, candidates)
  return insertPlacements(tx, demands, node, now)
}

/** The best node for one is the best for the next as well, because it is the fullest. Only one node is locked:
 *  transactions that lock several would wait for each other. */
async function takeRoomTogether(
  tx: Transaction<Tables>,
  demand: Demand,
  count: number,
  candidates: (demand: Demand) => Promise<readonly Candidate[]>,
): Promise<string> {
  const [best] = rankNodes(demand, await candidates(demand))
  if (best === undefined || !(await tryToAddRoom(tx, best.node, times(demand, count), { mustBeSchedulable: true })))
    throw noCapacity(demand.zone)
  return best.node
}

/** Takes the room on the best of the candidates that still has it, and answers with its name.
 *  Throws the Problem `no_capacity` (503) when no node can hold it, `no_distinct_failure_domain` (503) when only its
 *  group is in the way. */
export async function claimBestRoom(
  tx: Transaction<Tables>,
  demand: Demand,
  candidates: (demand: Demand) => Promise<readonly Candidate[]>,
): Promise<string> {
  for (let pass = 0; pass < PASSES_MAXIMUM; pass++) {
    const ranked = rankNodes(demand, await candidates(demand))
    if (ranked.length === 0) break
    for (const { node } of ranked) {
      if (await addRoom(tx, node, demand, { mustBeSchedulable: true })) return node
    }
  }
  const { apartness, ...alone } = demand
  throw apartness !== undefined && rankNodes(alone, await candidates(alone)).length > 0
    ? noDistinctDomain(apartness.spread, demand.zone)
    : noCapacity(demand.zone)
}

const DOMAINS = { host: 'node', rack: 'rack', zone: 'zone' } as const
const noDistinctDomain = (spread: Spread, zone: string): Problem =>
  unavailable(
    'no_distinct_failure_domain',
    `Every ${DOMAINS[spread]} with room ${spread === 'zone' ? '' : `in zone ${zone} `}holds a server of the ` +
      `group, which is strict. Choose a group that is not, ${spread === 'zone' ? 'another zone, ' : ''}or try ` +
      'again later.',
  )

const noCapacity = (zone: string): Problem =>
  unavailable(
    'no_capacity',
    `Zone ${zone} has no room for this plan now. Choose a smaller plan or another zone, or try again later.`,
  )

interface RoomConditions {
  /** A guest that is there may grow where nothing new is taken, but never leaves its pool. */
  readonly mustBeSchedulable?: boolean
  readonly cpuPool?: string | undefined
}

/** Takes the room on the node, if it has it. A failed try is rolled back to its savepoint, because PostgreSQL keeps the
 *  lock of a row that turned out
 *  not to match: two transactions that try nodes in different orders would wait for each other. */
export async function addRoom(
  tx: Transaction<Tables>,
  node: string,
  room: Room,
  terms: RoomConditions = {},
): Promise<boolean> {
  await sql`savepoint placement`.execute(tx)
  const isTaken = await tryToAddRoom(tx, node, room, terms)
  await (isTaken ? sql`release savepoint placement` : sql`rollback to savepoint placement`).execute(tx)
  return isTaken
}

async function tryToAddRoom(
  tx: Transaction<Tables>,
  node: string,
  room: Room,
  { mustBeSchedulable = false, cpuPool }: RoomConditions,
): Promise<boolean> {
  const taken = await tx
    .updateTable('node_capacity')
    .set((row) => ({
      cores_used: row('cores_used', '+', room.cores),
      memory_mebibytes_used: row('memory_mebibytes_used', '+', room.memoryMebibytes),
      storage_gibibytes_used: row('storage_gibibytes_used', '+', room.storageGibibytes),
    }))
    .where('node', '=', node)
    .$if(mustBeSchedulable, (query) => query.where('is_schedulable', '=', true))
    .$if(cpuPool !== undefined, (query) => query.where('cpu_pool', '=', cpuPool ?? ''))
    .where((row) => row(row('cores_used', '+', room.cores), '<=', row.ref('cores')))
    .where((row) => row(row('memory_mebibytes_used', '+', room.memoryMebibytes), '<=', row.ref('memory_mebibytes')))
    .where((row) => row(row('storage_gibibytes_used', '+', room.storageGibibytes), '<=', row.ref('storage_gibibytes')))
    .executeTakeFirst()
  return taken.numUpdatedRows > 0n
}

async function insertPlacements(
  tx: Transaction<Tables>,
  demands: readonly ServerDemandForRoom[],
  node: string,
  now: Date,
): Promise<readonly Placement[]> {
  await tx
    .insertInto('placement')
    .values(
      demands.map((demand) => ({
        account_id: demand.accountId,
        server_id: demand.serverId,
        zone: demand.zone,
        node,
        ...columnsOf(demand),
        claimed_at: now,
        group_id: demand.serverGroupId ?? null,
      })),
    )
    .execute()
  return demands.map(({ accountId, serverId, zone, cores, memoryMebibytes, storageGibibytes }) => ({
    accountId,
    serverId,
    zone,
    node,
    cores,
    memoryMebibytes,
    storageGibibytes,
  }))
}

/** Gives the server's room back, also what is held where it is on its way to; nothing when it was given back before. */
export async function releasePlacement(
  tx: Transaction<Tables>,
  server: { readonly accountId: string; readonly serverId: string },
): Promise<void> {
  const target = await tx
    .deleteFrom('placement_target')
    .where('account_id', '=', server.accountId)
    .where('server_id', '=', server.serverId)
    .returningAll()
    .executeTakeFirst()
  const released = await tx
    .deleteFrom('placement')
    .where('account_id', '=', server.accountId)
    .where('server_id', '=', server.serverId)
    .returningAll()
    .executeTakeFirst()
  if (released === undefined) return
  for (const row of [released, target]) if (row !== undefined) await releaseRoom(tx, row.node, roomOf(row))
}

/** The node may sell the room again. */
export async function releaseRoom(tx: Transaction<Tables>, node: string, room: Room): Promise<void> {
  await tx
    .updateTable('node_capacity')
    .set((row) => ({
      cores_used: row('cores_used', '-', room.cores),
      memory_mebibytes_used: row('memory_mebibytes_used', '-', room.memoryMebibytes),
      storage_gibibytes_used: row('storage_gibibytes_used', '-', room.storageGibibytes),
    }))
    .where('node', '=', node)
    .execute()
}

/** Undefined while the server holds no room. */
export async function findPlacement(
  db: Queries,
  server: { readonly accountId: string; readonly serverId: string },
): Promise<Placement | undefined> {
  const row = await db
    .selectFrom('placement')
    .selectAll()
    .where('account_id', '=', server.accountId)
    .where('server_id', '=', server.serverId)
    .executeTakeFirst()
  return (
    row && {
      accountId: row.account_id,
      serverId: row.server_id,
      zone: row.zone,
      node: row.node,
      cores: row.cores,
      memoryMebibytes: row.memory_mebibytes,
      storageGibibytes: row.storage_gibibytes,
    }
  )
}

/** Those of the servers, all of one account, that hold room. */
export async function listPlaced(
  db: Queries,
  accountId: string,
  serverIds: readonly string[],
): Promise<readonly string[]> {
  const rows = await db
    .selectFrom('placement')
    .select('server_id')
    .where('account_id', '=', accountId)
    .where('server_id', 'in', serverIds)
    .execute()
  return rows.map((row) => row.server_id)
}

/** The nodes of a zone as placement sees them. */
export async function listCandidates(db: Queries, zone: string): Promise<readonly Candidate[]> {
  const rows = await db.selectFrom('node_capacity').selectAll().where('zone', '=', zone).orderBy('node').execute()
  return rows.map(toCandidate)
}

/** Every node as placement sees it. */
export async function listAllCandidates(db: Queries): Promise<readonly Candidate[]> {
  return (await db.selectFrom('node_capacity').selectAll().orderBy('node').execute()).map(toCandidate)
}

/** Undefined for a node that placement does not know. */
export async function findCandidate(db: Queries, node: string): Promise<Candidate | undefined> {
  const row = await db.selectFrom('node_capacity').selectAll().where('node', '=', node).executeTakeFirst()
  return row && toCandidate(row)
}
