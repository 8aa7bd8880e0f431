/** Room on nodes. A guest's claim is one row; taking it is one conditional update of its node, and deleting the row
 *  releases the room, so that neither can happen twice. The capacity of nodes is mirrored by
 *  `db/placement/nodes.ts`. */
import { type Selectable, sql, type Transaction } from 'kysely'
import { type Candidate, type Demand, rankNodes, type Room, type Spread, times } from '../../domain/node/placement.ts'
import { type Problem, unavailable } from '../../domain/problem.ts'
import { listBestNodes, toCandidate } from './best-nodes.ts'
import { requireLook } from '../look/index.ts'
import type { Queries } from '../kit/open.ts'
import { lockApartness, machineApartness } from '../server-group/index.ts'
import type { Tables } from '../tables.ts'
import { deleteWhere, selectWhere, updateWhere } from '../kit/where.ts'

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

/** The room in a row, without that of attached storages. */
export const roomOf = ({ cores, memory_mebibytes, storage_gibibytes }: RoomColumns): Room => ({
  cores,
  memoryMebibytes: memory_mebibytes,
  storageGibibytes: storage_gibibytes,
})
/** The room that a placement uses on its node: that of the server itself, and that of the storages attached to it. */
export const wholeRoomOf = (row: RoomColumns & { readonly attached_gibibytes: number }): Room => ({
  ...roomOf(row),
  storageGibibytes: row.storage_gibibytes + row.attached_gibibytes,
})
/** The room as columns of a row. */
export const columnsOf = (room: Room): RoomColumns => ({
  cores: room.cores,
  memory_mebibytes: room.memoryMebibytes,
  storage_gibibytes: room.storageGibibytes,
})

/** How often the candidates are read again when others took all of them meanwhile. */
const PASSES_MAXIMUM = 5

/** What a server needs; it may belong to a group. */
export interface ServerDemandForRoom extends Demand {
  readonly serverId: string
  readonly serverGroupId?: string | undefined
  /** The owner that the server runs for: such servers are kept on different nodes where that is possible. */
  readonly managedBy?: string | undefined
  /** Of the zone; groups that span zones are of a region. */
  readonly region?: string | undefined
}

/** Claims room for the server on the best node, once: an earlier claim of the server is returned as it is. Throws the
 *  Problems `no_capacity` and `no_distinct_failure_domain` (503) when no node can hold it, and 400 for a group that
 *  does not exist. */
export async function claimPlacement(
  tx: Transaction<Tables>,
  demand: ServerDemandForRoom,
  now: Date,
): Promise<Placement> {
  const placement = (await findPlacement(tx, demand)) ?? (await claimFirstPlacements(tx, [demand], now))[0]
  if (placement === undefined) throw new Error('a server was left out')
  return placement
}

/** The same for servers that have no room yet and differ in their ids only; a server of a group is claimed alone. All
 *  get room on one node, the one that each would get alone, or are refused together. */
export async function claimFirstPlacements(
  tx: Transaction<Tables>,
  demands: readonly ServerDemandForRoom[],
  now: Date,
): Promise<readonly Placement[]> {
  const [first] = demands
  if (first === undefined) return []
  const { serverGroupId: groupId, managedBy, accountId } = first
  const apartness =
    groupId !== undefined
      ? await lockApartness(tx, { accountId, groupId }, first)
      : managedBy !== undefined
        ? await machineApartness(tx, { accountId, managedBy }, first.serverId)
        : undefined
  const candidates = (wanted: Demand) => listBestNodes(tx, wanted)
  const node =
    demands.length === 1
      ? await claimBestRoom(tx, { ...first, apartness }, candidates)
      : await takeRoomTogether(tx, first, demands.length, candidates)
  return insertPlacements(tx, demands, node, now)
}

/** The best node for one is the best for the next too, because it is the fullest. Only one node is locked: transactions
 *  that lock several would wait for each other. */
async function takeRoomTogether(
  tx: Transaction<Tables>,
  demand: Demand,
  count: number,
  candidates: (demand: Demand) => Promise<readonly Candidate[]>,
): Promise<string> {
  const [best] = rankNodes(demand, await candidates(demand))
  if (best === undefined || !(await tryToAddRoom(tx, best.node, times(demand, count), { newFor: demand.accountId })))
    throw noCapacity(demand.zone)
  return best.node
}

/** Claims the room on the best of the candidates that still has it, and returns its name. Throws the Problem
 *  `no_capacity` (503) when no node can hold it, `no_distinct_failure_domain` (503) when only its group prevents it. */
export async function claimBestRoom(
  tx: Transaction<Tables>,
  demand: Demand,
  candidates: (demand: Demand) => Promise<readonly Candidate[]>,
): Promise<string> {
  for (let pass = 0; pass < PASSES_MAXIMUM; pass++) {
    const ranked = rankNodes(demand, await candidates(demand))
    if (ranked.length === 0) break
    for (const { node } of ranked) {
      if (await addRoom(tx, node, demand, { newFor: demand.accountId })) return node
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
  /** The account of a new guest or disk: the node must accept new ones, and not be dedicated to another account since
   *  it was chosen. An existing guest may grow on a node that accepts nothing new, within its CPU pool. */
  readonly newFor?: string
  readonly cpuPool?: string | undefined
}

/** Claims the room on the node, if it has it. A failed attempt is rolled back to its savepoint, because PostgreSQL
 *  keeps the lock of a row that did not match: two transactions that try nodes in different orders would wait for each
 *  other. */
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
  { newFor, cpuPool }: RoomConditions,
): Promise<boolean> {
  await requireLook(tx)
  const result = await updateWhere(tx, 'node_capacity', { node })
    .set((row) => ({
      cores_used: row('cores_used', '+', room.cores),
      memory_mebibytes_used: row('memory_mebibytes_used', '+', room.memoryMebibytes),
      storage_gibibytes_used: row('storage_gibibytes_used', '+', room.storageGibibytes),
    }))
    .$if(newFor !== undefined, (query) =>
      query
        .where('is_schedulable', '=', true)
        .where(sql<boolean>`coalesce(dedicated_account_id::text, ${newFor}) = ${newFor}`),
    )
    .$if(cpuPool !== undefined, (query) => query.where('cpu_pool', '=', cpuPool ?? ''))
    .where('cores_free', '>=', room.cores)
    .where('memory_mebibytes_free', '>=', room.memoryMebibytes)
    .where('storage_gibibytes_free', '>=', room.storageGibibytes)
    .executeTakeFirst()
  return result.numUpdatedRows > 0n
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
        managed_by: demand.managedBy ?? null,
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

/** Releases the server's room, also on the target of a move. Idempotent. */
export async function releasePlacement(
  tx: Transaction<Tables>,
  server: { readonly accountId: string; readonly serverId: string },
): Promise<void> {
  const target = await deleteWhere(tx, 'placement_target', { account_id: server.accountId, server_id: server.serverId })
    .returningAll()
    .executeTakeFirst()
  const released = await deleteWhere(tx, 'placement', { account_id: server.accountId, server_id: server.serverId })
    .returningAll()
    .executeTakeFirst()
  if (released === undefined) return
  const keptGibibytes = await leaveStorages(tx, server, released.node)
  const { storageGibibytes, ...room } = wholeRoomOf(released)
  await releaseRoom(tx, released.node, { ...room, storageGibibytes: storageGibibytes - keptGibibytes })
  if (target !== undefined) await releaseRoom(tx, target.node, roomOf(target))
}

/** The storages of a deleted server stay where their data is. Returns how many GiB of its room they keep. */
async function leaveStorages(
  tx: Transaction<Tables>,
  { accountId, serverId }: Pick<Placement, 'accountId' | 'serverId'>,
  node: string,
): Promise<number> {
  const detached = { phase: 'detached', server_id: null, slot: null, has_room: true, is_forced: false } as const
  const ofServer = updateWhere(tx, 'storage_claim', { account_id: accountId, server_id: serverId })
  const rows = await ofServer
    .where('has_room', '=', false)
    .set({ ...detached, node })
    .returning('size_gibibytes')
    .execute()
  await ofServer.set(detached).execute()
  return rows.reduce((sum, { size_gibibytes: size }) => sum + size, 0)
}

/** Returns the room to the node. */
export async function releaseRoom(tx: Transaction<Tables>, node: string, room: Room): Promise<void> {
  await updateWhere(tx, 'node_capacity', { node })
    .set((row) => ({
      cores_used: row('cores_used', '-', room.cores),
      memory_mebibytes_used: row('memory_mebibytes_used', '-', room.memoryMebibytes),
      storage_gibibytes_used: row('storage_gibibytes_used', '-', room.storageGibibytes),
    }))
    .execute()
}

/** The complete row, locked until the transaction ends; undefined while the server holds no room. */
export const lockPlacement = (
  tx: Transaction<Tables>,
  { accountId, serverId }: { readonly accountId: string; readonly serverId: string },
): Promise<Selectable<Tables['placement']> | undefined> =>
  selectWhere(tx, 'placement', { account_id: accountId, server_id: serverId })
    .selectAll()
    .forUpdate()
    .executeTakeFirst()

/** Undefined while the server holds no room. */
export async function findPlacement(
  db: Queries,
  server: { readonly accountId: string; readonly serverId: string },
): Promise<Placement | undefined> {
  const row = await selectWhere(db, 'placement', { account_id: server.accountId, server_id: server.serverId })
    .selectAll()
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

/** The placements of the servers, all of one account, that hold room. */
export async function listPlaced(
  db: Queries,
  accountId: string,
  serverIds: readonly string[],
): Promise<readonly string[]> {
  const rows = await selectWhere(db, 'placement', { account_id: accountId })
    .select('server_id')
    .where('server_id', 'in', serverIds)
    .execute()
  return rows.map((row) => row.server_id)
}

/** The nodes of a zone as placement sees them. */
export async function listCandidates(db: Queries, zone: string): Promise<readonly Candidate[]> {
  const rows = await selectWhere(db, 'node_capacity', { zone }).selectAll().orderBy('node').execute()
  return rows.map(toCandidate)
}

/** Every node as placement sees it. */
export async function listAllCandidates(db: Queries): Promise<readonly Candidate[]> {
  return (await db.selectFrom('node_capacity').selectAll().orderBy('node').execute()).map(toCandidate)
}

/** Undefined for a node that placement does not know. */
export async function findCandidate(db: Queries, node: string): Promise<Candidate | undefined> {
  const row = await selectWhere(db, 'node_capacity', { node }).selectAll().executeTakeFirst()
  return row && toCandidate(row)
}
