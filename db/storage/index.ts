/** Claims of storages in PostgreSQL: quota, room on the node of their data, and the server whose guest has the disk. A
 *  storage is detached, arriving at its server's node, attached, or leaving its server. Each transition is one
 *  conditional update, so that a disk never has two servers. None happens while the server moves to another node: the
 *  disks that move with it stay the same from beginning to end. Boot storages are part of the claims of their server
 *  (`db/server/`). */
import type { Selectable, Transaction } from 'kysely'
import type { Candidate, Demand } from '../../domain/node/placement.ts'
import { badField, conflict, Unavailable, unavailable } from '../../domain/problem.ts'
import { storageQuota } from '../../domain/account/quota.ts'
import { DATA_STORAGES_PER_SERVER_MAXIMUM } from '../../domain/storage/rules.ts'
import { rehearse } from '../kit/begin.ts'
import { changeQuotas, releaseQuotas, takeQuotas } from '../account/index.ts'
import type { Database, Queries } from '../kit/open.ts'
import {
  addRoom,
  claimBestRoom,
  findCandidate,
  listBestNodes,
  listCandidates,
  lockPlacement,
  releaseRoom,
} from '../placement/index.ts'
import { storageHolder } from '../server/index.ts'
import {
  copyHolder,
  type Hold,
  insertHold,
  releaseHold,
  readHolds,
  requireNoEnd,
  requireMovable,
  requireNoLocalHolds,
  requireNotKept,
} from '../storage-hold/index.ts'
import type { Tables } from '../tables.ts'
import { deleteWhere, selectWhere, updateWhere } from '../kit/where.ts'

export interface StorageId {
  readonly accountId: string
  readonly storageId: string
}

export interface StorageClaim extends StorageId {
  readonly zone: string
  readonly sizeGibibytes: number
  readonly phase: Tables['storage_claim']['phase']
  /** The node that holds the data; undefined while it is that of the server. */
  readonly node: string | undefined
  /** The target of its own move; undefined while it does not move. */
  readonly targetNode?: string | undefined
  readonly serverId: string | undefined
  /** It is detached even when the guest does not release it. */
  readonly isForced: boolean
}

/** Room for storage only. */
const roomFor = (gibibytes: number) => ({ cores: 0, memoryMebibytes: 0, storageGibibytes: gibibytes })

const isOf = ({ accountId, storageId }: StorageId) => ({ account_id: accountId, storage_id: storageId })

/** Claims quota and room on a node of the zone, once; on the preferred node where that has room.
 *  Throws the Problems `quota_exceeded` (422) and `no_capacity` (503). */
export async function claimStorage(
  tx: Transaction<Tables>,
  {
    accountId,
    storageId,
    zone,
    sizeGibibytes,
    preferredNode,
    nodes,
    isFromBackup = false,
    copyOf,
  }: StorageId & {
    readonly zone: string
    readonly sizeGibibytes: number
    readonly preferredNode?: string | undefined
    /** The only nodes that can create it; all of the zone when absent. */
    readonly nodes?: readonly string[] | undefined
    /** Only nodes that reach the store of the zone's backups can create it. */
    readonly isFromBackup?: boolean | undefined
    /** The storage that it is a copy of, which stays where it is until then. */
    readonly copyOf?: Pick<Hold, 'storageId' | 'bootServerId' | 'isShared'> | undefined
  },
  now: Date,
): Promise<void> {
  if ((await findStorageClaim(tx, { accountId, storageId })) !== undefined) return
  await takeQuotas(tx, { accountId, holder: storageHolder(storageId), amounts: storageQuota(sizeGibibytes) })
  if (copyOf !== undefined) await holdStorage(tx, { accountId, holder: copyHolder(storageId), ...copyOf })
  const room = roomFor(sizeGibibytes)
  const isFit = ({ node: name, hasBackups }: Pick<Candidate, 'node' | 'hasBackups'>): boolean =>
    nodes?.includes(name) !== false && (!isFromBackup || hasBackups === true)
  const preferred = preferredNode === undefined ? undefined : await findCandidate(tx, preferredNode)
  const isPreferred =
    preferred !== undefined && isFit(preferred) && (await addRoom(tx, preferred.node, room, { newFor: accountId }))
  const node = isPreferred
    ? preferred.node
    : await claimBestRoom(tx, { accountId, zone, ...room }, async (demand) =>
        nodes === undefined && !isFromBackup
          ? listBestNodes(tx, demand)
          : (await listCandidates(tx, zone)).filter(isFit),
      )
  await tx
    .insertInto('storage_claim')
    .values({
      ...isOf({ accountId, storageId }),
      zone,
      size_gibibytes: sizeGibibytes,
      phase: 'detached',
      node,
      claimed_at: now,
    })
    .execute()
}

/** Holds the storage, and the place of its data, once. Throws `state_not_allowed` (409) while it is on its way to a
 *  server, or its server to another host, and while its end was accepted and may not be visible yet. */
export async function holdStorage(tx: Transaction<Tables>, hold: Hold): Promise<void> {
  const { accountId, storageId, bootServerId } = hold
  const found = bootServerId === undefined ? await findStorageClaim(tx, { accountId, storageId }) : undefined
  const serverId = bootServerId ?? found?.serverId
  if (serverId !== undefined) await lockServer(tx, { accountId, serverId })
  if (bootServerId === undefined) {
    const claim = await lockClaim(tx, { accountId, storageId })
    if (claim.server_id !== (found?.serverId ?? null)) throw new Unavailable('the storage')
    if (claim.phase === 'arriving')
      throw conflict('state_not_allowed', 'The storage is on its way to its server. Try again in a minute.', {
        resource: storageOf({ accountId, storageId }),
      })
  }
  await requireNoEnd(tx, hold)
  await insertHold(tx, hold)
}

/** Throws `in_use` (409) while the storage is held. It is locked: later holds are refused. */
export async function requireEndable(tx: Transaction<Tables>, id: StorageId): Promise<void> {
  await rowOf(tx, id).forUpdate().executeTakeFirst()
  await requireNotKept(tx, id)
}

/** The copy is complete, or never will be: its source may be deleted. Does nothing when that was done before. */
export const releaseSource = (tx: Transaction<Tables>, { accountId, storageId }: StorageId): Promise<void> =>
  releaseHold(tx, { accountId, holder: copyHolder(storageId) })

/** Undefined while the storage holds nothing, and for boot storages. */
export async function findStorageClaim(db: Queries, id: StorageId): Promise<StorageClaim | undefined> {
  const row = await rowOf(db, id).executeTakeFirst()
  return row && toClaim(row)
}

const rowOf = (db: Queries, { accountId, storageId }: StorageId) =>
  selectWhere(db, 'storage_claim', { account_id: accountId, storage_id: storageId }).selectAll()

const toClaim = (row: Selectable<Tables['storage_claim']>): StorageClaim => ({
  accountId: row.account_id,
  storageId: row.storage_id,
  zone: row.zone,
  sizeGibibytes: row.size_gibibytes,
  phase: row.phase,
  node: row.node ?? undefined,
  targetNode: row.target_node ?? undefined,
  serverId: row.server_id ?? undefined,
  isForced: row.is_forced,
})

/** Attaches the storage to the server, once: claims a slot of the guest, and room on the server's node when the data is
 *  on another. `volume` is the uid of the storage.
 *  Throws the Problems `in_use` (409) when it is another server's, `state_not_allowed` (409) when the server has the
 *  maximum, moves or has no placement, `no_capacity` (503), and 400 when it is in another zone. */
export async function attachStorage(
  tx: Transaction<Tables>,
  { serverId, volume, ...id }: StorageId & { readonly serverId: string; readonly volume: string },
): Promise<void> {
  const placement = await lockServer(tx, { accountId: id.accountId, serverId })
  const claim = await lockClaim(tx, id)
  if (claim.server_id === serverId && claim.phase !== 'leaving') return
  if (claim.phase !== 'detached' || claim.node === null)
    throw conflict('in_use', 'The storage is attached to a server. Detach it first.', { resource: storageOf(id) })
  if (claim.zone !== placement.zone)
    throw badField('serverId', `the server is in zone ${placement.zone}, the storage in zone ${claim.zone}`)
  await releaseTargetRoom(tx, claim)
  const isThere = claim.node === placement.node
  if (!isThere) await requireNoLocalHolds(tx, id)
  if (!isThere) await changeRoom(tx, placement.node, claim.size_gibibytes)
  await changeAttached(tx, { accountId: id.accountId, serverId }, claim.size_gibibytes)
  await changeClaim(tx, id, {
    phase: 'arriving',
    target_node: null,
    has_room: !isThere,
    server_id: serverId,
    volume,
    slot: await freeSlot(tx, { accountId: id.accountId, serverId }),
    is_forced: false,
  })
}

/** The data has arrived on the server's node: releases what was held on the source. Idempotent. Throws Unavailable
 *  while the server is on another node or moves. */
export async function landStorage(
  tx: Transaction<Tables>,
  { serverId, node, ...id }: StorageId & { readonly serverId: string; readonly node: string },
): Promise<void> {
  const placement = await lockServer(tx, { accountId: id.accountId, serverId })
  const claim = await lockClaim(tx, id)
  if (claim.phase !== 'arriving' || claim.node === null) return
  if (placement.node !== node) throw new Unavailable(`node ${node} of the server`)
  await changeClaim(tx, id, { phase: 'attached', node: null, has_room: false })
  if (claim.has_room) await releaseRoom(tx, claim.node, roomFor(claim.size_gibibytes))
}

/** Starts to detach the disk; its data stays on the server's current node. A storage that has not arrived is detached
 *  at once. Idempotent. Throws Problem `state_not_allowed` (409) while the server moves. */
export async function releaseStorage(
  tx: Transaction<Tables>,
  { isForced, ...id }: StorageId & { readonly isForced: boolean },
): Promise<void> {
  const found = await findStorageClaim(tx, id)
  if (found?.serverId === undefined) return
  const server = { accountId: id.accountId, serverId: found.serverId }
  const placement = await lockServer(tx, server)
  const claim = await lockClaim(tx, id)
  if (claim.server_id !== found.serverId) throw new Unavailable('the storage')
  if (claim.phase === 'leaving') {
    if (isForced && !claim.is_forced) await changeClaim(tx, id, { is_forced: true })
    return
  }
  await changeAttached(tx, server, -claim.size_gibibytes)
  if (claim.phase === 'attached') {
    await changeClaim(tx, id, { phase: 'leaving', node: placement.node, has_room: true, is_forced: isForced })
    return
  }
  if (claim.has_room) await releaseRoom(tx, placement.node, roomFor(claim.size_gibibytes))
  await changeClaim(tx, id, DETACHED)
}

/** Releases the attachment that a change claimed and did not write. Another change for the same server may have found
 *  it claimed, and be written: `isDesired` says whether the storage must be attached to the server. Idempotent. Throws
 *  the Problem `state_not_allowed` (409) while the server moves. */
export async function withdrawAttachment(
  tx: Transaction<Tables>,
  { serverId, ...id }: StorageId & { readonly serverId: string },
  isDesired: boolean,
): Promise<void> {
  if ((await findStorageClaim(tx, id))?.serverId !== serverId) return
  await lockServer(tx, { accountId: id.accountId, serverId })
  const claim = await lockClaim(tx, id)
  if (claim.server_id !== serverId || isDesired) return
  await releaseStorage(tx, { ...id, isForced: false })
}

/** Cancels a detach: the guest keeps the disk. Returns false when its server has moved without it; it is then
 *  detached. */
export async function keepStorage(tx: Transaction<Tables>, id: StorageId): Promise<boolean> {
  const found = await findStorageClaim(tx, id)
  if (found?.serverId === undefined) return false
  const server = { accountId: id.accountId, serverId: found.serverId }
  const placement = await lockServer(tx, server)
  const claim = await lockClaim(tx, id)
  if (claim.phase !== 'leaving') return claim.phase === 'attached'
  if (claim.node !== placement.node) {
    await changeClaim(tx, id, DETACHED)
    return false
  }
  await changeAttached(tx, server, claim.size_gibibytes)
  await changeClaim(tx, id, { phase: 'attached', node: null, has_room: false, is_forced: false })
  return true
}

const DETACHED = { phase: 'detached', server_id: null, slot: null, has_room: true, is_forced: false } as const

/** The guest has released the disk. Idempotent. */
export async function detachStorage(tx: Transaction<Tables>, id: StorageId): Promise<void> {
  const claim = await rowOf(tx, id).forUpdate().executeTakeFirst()
  if (claim?.phase === 'leaving') await changeClaim(tx, id, DETACHED)
}

/** Sets the claim to what a storage of this size needs: more before it grows, less after growing failed. Idempotent.
 *  Throws the Problems `quota_exceeded` (422), `no_capacity` (503), and `state_not_allowed` (409) while its server
 *  moves or it is being moved there. */
export async function resizeStorageClaim(
  tx: Transaction<Tables>,
  { sizeGibibytes, ...id }: StorageId & { readonly sizeGibibytes: number },
): Promise<void> {
  await changeQuotas(tx, {
    accountId: id.accountId,
    holder: storageHolder(id.storageId),
    amounts: storageQuota(sizeGibibytes),
  })
  const found = await findStorageClaim(tx, id)
  const server = found?.serverId === undefined ? undefined : { accountId: id.accountId, serverId: found.serverId }
  const placement = server && (await lockServer(tx, server))
  const claim = await lockClaim(tx, id)
  const added = sizeGibibytes - claim.size_gibibytes
  if (claim.server_id !== (found?.serverId ?? null)) throw new Unavailable('the storage')
  if (claim.phase === 'arriving' || claim.target_node !== null)
    throw conflict(
      'state_not_allowed',
      'The storage is on its way to its server or to another host. Try again in a minute.',
      { resource: storageOf(id) },
    )
  const node = claim.node ?? placement?.node
  if (node === undefined) throw new Unavailable('the room of the storage')
  await changeRoom(tx, node, added)
  if (claim.phase === 'attached' && server !== undefined) await changeAttached(tx, server, added)
  await changeClaim(tx, id, { size_gibibytes: sizeGibibytes })
}

/** As `resizeStorageClaim`, for the boot storage of a server. Throws `state_not_allowed` also while its plan is
 *  changed. */
export async function resizeBootStorageClaim(
  tx: Transaction<Tables>,
  { serverId, sizeGibibytes, ...id }: StorageId & { readonly serverId: string; readonly sizeGibibytes: number },
): Promise<void> {
  // A first boot storage is held under the name of the server, which a rebuilt server keeps.
  await changeQuotas(tx, {
    accountId: id.accountId,
    holder: storageHolder(serverId),
    amounts: storageQuota(sizeGibibytes),
  })
  const placement = await lockServer(tx, { accountId: id.accountId, serverId })
  const changing = await selectWhere(tx, 'size_change', { account_id: id.accountId, server_id: serverId })
    .select('operation_id')
    .executeTakeFirst()
  if (changing !== undefined)
    throw conflict('state_not_allowed', 'The plan of the server is being changed. Try again in a minute.', {
      resource: { type: 'server', id: serverId },
    })
  await changeRoom(tx, placement.node, sizeGibibytes - placement.storage_gibibytes)
  await updateWhere(tx, 'placement', { account_id: id.accountId, server_id: serverId })
    .set({ storage_gibibytes: sizeGibibytes })
    .execute()
}

/** Sets the claim of a storage of any kind to this size. Idempotent. Throws as `resizeStorageClaim` and
 *  `resizeBootStorageClaim`. */
export const holdSize = (
  tx: Transaction<Tables>,
  id: StorageId,
  { sizeGibibytes, isBoot, serverId }: DesiredSize,
): Promise<void> =>
  isBoot && serverId !== undefined
    ? resizeBootStorageClaim(tx, { ...id, serverId, sizeGibibytes })
    : resizeStorageClaim(tx, { ...id, sizeGibibytes })

export interface DesiredSize {
  readonly sizeGibibytes: number
  readonly isBoot: boolean
  readonly serverId?: string | undefined
}

/** After a change of the size that was not written: sets the claim to the storage's desired size, which another change
 *  may have raised meanwhile. Does nothing for a deleted storage: its deletion releases everything. Throws as
 *  `holdSize`. */
export const withdrawResize = async (
  tx: Transaction<Tables>,
  id: StorageId,
  desired: DesiredSize | undefined,
): Promise<void> => (desired === undefined ? undefined : holdSize(tx, id, desired))

/** Releases everything that a detached storage holds. Idempotent. */
export async function deleteStorageClaim(tx: Transaction<Tables>, id: StorageId): Promise<void> {
  await releaseQuotas(tx, { accountId: id.accountId, holder: storageHolder(id.storageId) })
  await releaseSource(tx, id)
  const claim = await rowOf(tx, id).forUpdate().executeTakeFirst()
  if (claim === undefined) return
  if (claim.phase !== 'detached' || claim.node === null) throw new Unavailable('the server of the storage')
  if ((await readHolds(tx, id)).isKept) throw new Unavailable('the end of the snapshots of the storage')
  await deleteWhere(tx, 'storage_claim', { account_id: id.accountId, storage_id: id.storageId }).execute()
  await releaseRoom(tx, claim.node, roomFor(claim.size_gibibytes))
  await releaseTargetRoom(tx, claim)
}

/** Holds room for a detached storage on another node of its zone, once, in addition to that of its data: on the very
 *  `node`, or on the best one that is not excluded. Returns the node. Throws the Problems `no_capacity` (503), `in_use`
 *  (409) for one that has snapshots, which a copy would not have (`staysShared` makes none: the other node reaches the
 *  shared storage that contains the data), and `state_not_allowed` (409) for one that is attached to a server. */
export async function reserveStorageMove(
  tx: Transaction<Tables>,
  {
    node,
    excludedNodes = [],
    staysShared = false,
    ...id
  }: StorageId & {
    readonly node?: string | undefined
    readonly excludedNodes?: readonly string[] | undefined
    readonly staysShared?: boolean
  },
): Promise<string> {
  const claim = await lockClaim(tx, id)
  if (claim.phase !== 'detached' || claim.node === null)
    throw conflict('state_not_allowed', 'The storage is attached to a server, and goes with that.', {
      resource: storageOf(id),
    })
  if (claim.target_node !== null && (node === undefined || node === claim.target_node)) return claim.target_node
  await requireMovable(tx, id, { staysShared })
  await releaseTargetRoom(tx, claim)
  const room = roomFor(claim.size_gibibytes)
  const demand: Demand = {
    accountId: id.accountId,
    zone: claim.zone,
    ...room,
    excludedNodes: [...new Set([claim.node, ...excludedNodes])],
  }
  const candidates = async () =>
    node === undefined
      ? listBestNodes(tx, demand)
      : (await listCandidates(tx, claim.zone)).filter((candidate) => candidate.node === node)
  const target = await claimBestRoom(tx, demand, candidates)
  await changeClaim(tx, id, { target_node: target })
  return target
}

/** The data of a detached storage have been moved to the node: releases what was held at the source. Does nothing when
 *  that was done before. */
export async function landStorageMove(
  tx: Transaction<Tables>,
  { node, ...id }: StorageId & { readonly node: string },
): Promise<void> {
  const claim = await rowOf(tx, id).forUpdate().executeTakeFirst()
  if (claim === undefined || claim.target_node !== node || claim.node === null) return
  await changeClaim(tx, id, { node, target_node: null })
  await releaseRoom(tx, claim.node, roomFor(claim.size_gibibytes))
}

/** The storage stays where it is. Does nothing when nothing is held for it elsewhere. */
export async function releaseStorageMove(tx: Transaction<Tables>, id: StorageId): Promise<void> {
  const claim = await rowOf(tx, id).forUpdate().executeTakeFirst()
  if (claim === undefined || claim.target_node === null) return
  await changeClaim(tx, id, { target_node: null })
  await releaseTargetRoom(tx, claim)
}

/** Throws what `reserveStorageMove` would, and holds nothing. */
export async function requireStorageMove(
  db: Database,
  request: Parameters<typeof reserveStorageMove>[1],
): Promise<void> {
  await rehearse(db, (tx) => reserveStorageMove(tx, request))
}

const releaseTargetRoom = async (
  tx: Transaction<Tables>,
  {
    target_node: node,
    size_gibibytes: size,
  }: Pick<Selectable<Tables['storage_claim']>, 'target_node' | 'size_gibibytes'>,
): Promise<void> => (node === null ? undefined : releaseRoom(tx, node, roomFor(size)))

/** The separate storages whose data are on the node or on their way there, by account and id; those of its servers are
 *  not among them. */
export async function listStoragesOn(
  db: Queries,
  node: string,
): Promise<readonly (StorageId & { readonly sizeGibibytes: number; readonly isArriving: boolean })[]> {
  const rows = await db
    .selectFrom('storage_claim')
    .select(['account_id', 'storage_id', 'size_gibibytes', 'node'])
    .where((row) => row.or([row('node', '=', node), row('target_node', '=', node)]))
    .orderBy('account_id')
    .orderBy('storage_id')
    .execute()
  return rows.map((row) => ({
    accountId: row.account_id,
    storageId: row.storage_id,
    sizeGibibytes: row.size_gibibytes,
    isArriving: row.node !== node,
  }))
}

/** Separate storages, attached or not, that have held room since before the given time. */
export async function listStoragesWithClaims(db: Queries, claimedBefore: Date): Promise<readonly StorageId[]> {
  const rows = await db
    .selectFrom('storage_claim')
    .select(['account_id', 'storage_id'])
    .where('claimed_at', '<', claimedBefore)
    .execute()
  return rows.map((row) => ({ accountId: row.account_id, storageId: row.storage_id }))
}

const storageOf = ({ storageId }: StorageId) => ({ type: 'storage', id: storageId })

interface ServerKey {
  readonly accountId: string
  readonly serverId: string
}

/** Its placement, locked until the transaction ends. Throws `state_not_allowed` (409) for a server that has none or
 *  moves. */
async function lockServer(
  tx: Transaction<Tables>,
  { accountId, serverId }: ServerKey,
): Promise<Selectable<Tables['placement']>> {
  const resource = { type: 'server', id: serverId }
  const placement = await lockPlacement(tx, { accountId, serverId })
  if (placement === undefined) throw conflict('state_not_allowed', 'The server has no room on any host.', { resource })
  const moving = await selectWhere(tx, 'placement_target', { account_id: accountId, server_id: serverId })
    .select('operation_id')
    .executeTakeFirst()
  if (moving !== undefined)
    throw conflict('state_not_allowed', 'The server is being moved. Try again when it has arrived.', { resource })
  return placement
}

async function lockClaim(tx: Transaction<Tables>, id: StorageId): Promise<Selectable<Tables['storage_claim']>> {
  const claim = await rowOf(tx, id).forUpdate().executeTakeFirst()
  if (claim === undefined)
    throw conflict('state_not_allowed', 'The storage is not made yet.', { resource: storageOf(id) })
  return claim
}

const changeClaim = async (
  tx: Transaction<Tables>,
  { accountId, storageId }: StorageId,
  change: Partial<Omit<Selectable<Tables['storage_claim']>, 'account_id' | 'storage_id' | 'claimed_at'>>,
): Promise<void> =>
  void (await updateWhere(tx, 'storage_claim', { account_id: accountId, storage_id: storageId }).set(change).execute())

const changeAttached = async (
  tx: Transaction<Tables>,
  { accountId, serverId }: ServerKey,
  gibibytes: number,
): Promise<void> =>
  void (await updateWhere(tx, 'placement', { account_id: accountId, server_id: serverId })
    .set((row) => ({ attached_gibibytes: row('attached_gibibytes', '+', gibibytes) }))
    .execute())

/** Claims positive amounts and releases negative ones. An existing storage may grow on a node that accepts nothing
 *  new. */
async function changeRoom(tx: Transaction<Tables>, node: string, gibibytes: number): Promise<void> {
  if (gibibytes < 0) await releaseRoom(tx, node, roomFor(-gibibytes))
  else if (gibibytes > 0 && !(await addRoom(tx, node, roomFor(gibibytes))))
    throw unavailable('no_capacity', 'The host of the storage has no room for it now. Try again later.')
}

async function freeSlot(tx: Transaction<Tables>, { accountId, serverId }: ServerKey): Promise<number> {
  const rows = await selectWhere(tx, 'storage_claim', { account_id: accountId, server_id: serverId })
    .select('slot')
    .execute()
  const usedSlots = rows.map(({ slot }) => slot)
  const free = Array.from({ length: DATA_STORAGES_PER_SERVER_MAXIMUM }, (_, index) => index + 1).find(
    (slot) => !usedSlots.includes(slot),
  )
  if (free === undefined)
    throw conflict(
      'state_not_allowed',
      `The server has ${DATA_STORAGES_PER_SERVER_MAXIMUM} storages besides its boot storage, and takes no more.`,
      { resource: { type: 'server', id: serverId } },
    )
  return free
}
