/** The move of a server from one node to another, as PostgreSQL records it: room is held on source and target until
 *  cutover. The row of `placement` says which node a server is on; `cutOverPlacement` changes it. Host name and public
 *  addresses belong to one zone: a server that moves to another holds those of both zones until cutover. */
import type { Transaction } from 'kysely'
import { type Demand, remainingRoom, largest, type Room } from '../../domain/node/placement.ts'
import { conflict, Unavailable } from '../../domain/problem.ts'
import { UNMADE } from '../../domain/server/rules.ts'
import { rehearse } from '../kit/begin.ts'
import { claimHostname, findHostname, passClaims, releaseClaims } from '../claim/index.ts'
import {
  claimBestRoom,
  columnsOf,
  listCandidates,
  lockPlacement,
  releaseRoom,
  roomOf,
  wholeRoomOf,
} from '../placement/index.ts'
import { claimAddresses, listAddresses, passAddresses, releaseAddresses } from '../public-pool/index.ts'
import { lockApartness, machineApartness } from '../server-group/index.ts'
import { arrivingServerHolder, serverHolder } from './holders.ts'
import { findSizeChange } from './size-changes.ts'
import { requireNoInterfaces } from '../network-interface/index.ts'
import { requireNoMoveHolds } from '../storage-hold/index.ts'
import type { Database } from '../kit/open.ts'
import type { Tables } from '../tables.ts'
import { deleteWhere, selectWhere, updateWhere } from '../kit/where.ts'

interface MoveId {
  readonly accountId: string
  readonly serverId: string
  readonly operationId: string
}

export interface MoveTarget {
  readonly operationId: string
  readonly zone: string
  readonly node: string
}

/** Constraints on the target of a move: another zone, excluded nodes. `node` requires that very node. */
export type TargetRequest = MoveId &
  Partial<Pick<Demand, 'zone' | 'cpuPool' | 'excludedNodes'>> & { readonly node?: string | undefined }

/** Reserves room for the server on the best node other than its own, once: an earlier reservation of the operation is
 *  returned as it is, one of another operation is released. The server is kept apart from its group. `node` requires
 *  that very node. An operation that changes the server's size reserves the larger of both sizes. Throws the Problems
 *  `no_capacity` and `no_distinct_failure_domain` (503) when no node can hold it, `state_not_allowed` (409) when it has
 *  no placement, and Unavailable while another operation changes its size or attaches a storage of its node; `in_use`
 *  (409) when snapshots keep its data where they are; for another zone also `in_use` (409) while it has storages other
 *  than its boot storage, `name_taken` (409), `no_free_address` (503), and 400 when its group is not for servers
 *  there. */
export async function reserveTarget(
  tx: Transaction<Tables>,
  { accountId, serverId, operationId, node, ...request }: TargetRequest,
  now: Date,
): Promise<MoveTarget> {
  const placement = await lockPlacement(tx, { accountId, serverId })
  if (placement === undefined)
    throw conflict('state_not_allowed', UNMADE, { resource: { type: 'server', id: serverId } })
  const known = await selectWhere(tx, 'placement_target', { account_id: accountId, server_id: serverId })
    .selectAll()
    .executeTakeFirst()
  if (known?.operation_id === operationId) return { operationId, zone: known.zone, node: known.node }
  if (known !== undefined) await releaseTarget(tx, { accountId, serverId, operationId: known.operation_id })
  const { zone = placement.zone } = request
  const isLeaving = zone !== placement.zone
  if (isLeaving) await requireNoStorages(tx, { accountId, serverId })
  if (isLeaving) await requireNoInterfaces(tx, { accountId, serverId })
  await requireNoMoveHolds(tx, { accountId, serverId, isLeaving })
  const room = await roomToMove(tx, { accountId, serverId, operationId }, placement)
  // Locked before the room, as everywhere: a transaction that waits for the name must not hold room that others wait
  // for.
  if (isLeaving) await claimHostnameThere(tx, { accountId, serverId, zone }, now)
  const demand: Demand = {
    accountId,
    zone,
    ...room,
    cpuPool: request.cpuPool,
    excludedNodes: [placement.node, ...(request.excludedNodes ?? [])],
    apartness:
      placement.group_id !== null
        ? await lockApartness(tx, { accountId, groupId: placement.group_id }, { serverId, zone })
        : placement.managed_by !== null
          ? await machineApartness(tx, { accountId, managedBy: placement.managed_by }, serverId)
          : undefined,
  }
  const candidates = async () =>
    (await listCandidates(tx, demand.zone)).filter((candidate) => node === undefined || candidate.node === node)
  const target = await claimBestRoom(tx, demand, candidates)
  await tx
    .insertInto('placement_target')
    .values({
      account_id: accountId,
      server_id: serverId,
      operation_id: operationId,
      zone: demand.zone,
      node: target,
      ...columnsOf(room),
      reserved_at: now,
    })
    .execute()
  if (isLeaving) {
    const publicIpv4 = (await listAddresses(tx, { accountId, holder: serverHolder(serverId) })).some(
      ({ use }) => use === 'server_ipv4',
    )
    await claimAddresses(tx, arrivingHolderOf({ accountId, serverId }), { zone, publicIpv4 })
  }
  return { operationId, zone: demand.zone, node: target }
}

/** The room that the server needs on its next node: with its data disks, and the larger of its sizes when one is
 *  changed. */
async function roomToMove(
  tx: Transaction<Tables>,
  { accountId, serverId, operationId }: MoveId,
  placement: Parameters<typeof roomOf>[0] & { readonly attached_gibibytes: number },
): Promise<Room> {
  const change = await findSizeChange(tx, { accountId, serverId })
  if (change !== undefined && change.operationId !== operationId) throw new Unavailable('the size of the server')
  const arriving = await selectWhere(tx, 'storage_claim', {
    account_id: accountId,
    server_id: serverId,
    phase: 'arriving',
    has_room: false,
  })
    .select('storage_id')
    .executeTakeFirst()
  if (arriving !== undefined) throw new Unavailable(`storage ${arriving.storage_id} of the server`)
  const room = change === undefined ? roomOf(placement) : largest(roomOf(placement), change.after)
  return { ...room, storageGibibytes: room.storageGibibytes + placement.attached_gibibytes }
}

/** A storage belongs to one zone: a server with separate storages stays in its zone. */
async function requireNoStorages(
  tx: Transaction<Tables>,
  { accountId, serverId }: Pick<MoveId, 'accountId' | 'serverId'>,
): Promise<void> {
  const claim = await selectWhere(tx, 'storage_claim', { account_id: accountId, server_id: serverId })
    .select('storage_id')
    .orderBy('slot')
    .executeTakeFirst()
  if (claim !== undefined)
    throw conflict(
      'in_use',
      'The server has a storage besides its boot storage, which stays in its zone. Detach it first.',
      { resource: { type: 'storage', id: claim.storage_id } },
    )
}

async function claimHostnameThere(
  tx: Transaction<Tables>,
  { zone, ...server }: Pick<MoveId, 'accountId' | 'serverId'> & { readonly zone: string },
  now: Date,
): Promise<void> {
  const hostname = await findHostname(tx, { accountId: server.accountId, holder: serverHolder(server.serverId) })
  if (hostname === undefined) throw new Error('a server that holds room has a host name')
  await claimHostname(tx, { ...arrivingHolderOf(server), zone, hostname }, now)
}

const arrivingHolderOf = ({ accountId, serverId }: Pick<MoveId, 'accountId' | 'serverId'>) => ({
  accountId,
  holder: arrivingServerHolder(serverId),
})

/** Throws what `reserveTarget` would, and reserves nothing. */
export async function requireTarget(db: Database, request: TargetRequest, now: Date): Promise<void> {
  await rehearse(db, (tx) => reserveTarget(tx, request, now))
}

/** Deletes the reservation of the move. Returns it with the server's placement, which stays locked; undefined when
 *  there is none any longer. */
async function endMove(tx: Transaction<Tables>, { accountId, serverId, operationId }: MoveId) {
  const placement = await lockPlacement(tx, { accountId, serverId })
  const target = await deleteWhere(tx, 'placement_target', {
    account_id: accountId,
    server_id: serverId,
    operation_id: operationId,
  })
    .returningAll()
    .executeTakeFirst()
  if (placement === undefined || target === undefined) return undefined
  return { placement, target }
}

/** Cutover: moves the placement to the target and releases what the server held on the source node and in the source
 *  zone. Idempotent. */
export async function cutOverPlacement(
  tx: Transaction<Tables>,
  { accountId, serverId, operationId }: MoveId,
): Promise<void> {
  const ending = await endMove(tx, { accountId, serverId, operationId })
  if (ending === undefined) return
  const { placement, target } = ending
  // A change of size that ended meanwhile no longer needs the larger room.
  const isGrowing = (await findSizeChange(tx, { accountId, serverId }))?.operationId === operationId
  const [before, held] = [wholeRoomOf(placement), roomOf(target)]
  const size = isGrowing ? held : before
  const own = { ...size, storageGibibytes: size.storageGibibytes - placement.attached_gibibytes }
  await updateWhere(tx, 'placement', { account_id: accountId, server_id: serverId })
    .set({ node: target.node, zone: target.zone, ...columnsOf(own) })
    .execute()
  await releaseRoom(tx, target.node, remainingRoom(held, size))
  if (placement.zone !== target.zone) {
    await passClaims(tx, arrivingHolderOf({ accountId, serverId }), serverHolder(serverId))
    await passAddresses(tx, arrivingHolderOf({ accountId, serverId }), serverHolder(serverId))
  }
  await releaseRoom(tx, placement.node, before)
}

/** Aborts the move: releases what was reserved on the target. Idempotent. */
export async function releaseTarget(
  tx: Transaction<Tables>,
  { accountId, serverId, operationId }: MoveId,
): Promise<void> {
  const ending = await endMove(tx, { accountId, serverId, operationId })
  if (ending === undefined) return
  const { placement, target } = ending
  if (placement.zone !== target.zone) {
    await releaseClaims(tx, arrivingHolderOf({ accountId, serverId }))
    await releaseAddresses(tx, arrivingHolderOf({ accountId, serverId }))
  }
  await releaseRoom(tx, target.node, roomOf(target))
}
