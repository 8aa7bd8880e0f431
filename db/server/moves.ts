/** The move of a server from one node to another, as PostgreSQL sees it: room is held on both until the server lives on
 *  exactly one.
 *  Which node a server is on is the row of `placement`; `cutOverPlacement` is the moment at which it changes. A host
 *  name and public addresses
 *  are of one zone: a server that goes to another holds those of both until then. */
import type { Transaction } from 'kysely'
import { type Demand, difference, largest } from '../../domain/placement.ts'
import { conflict, Unavailable } from '../../domain/problem.ts'
import { UNMADE } from '../../domain/server-rules.ts'
import { claimHostname, findHostname, passClaims, releaseClaims } from '../claim/index.ts'
import { columnsOf, releaseRoom, listCandidates, roomOf, claimBestRoom } from '../placement/index.ts'
import { claimAddresses, listAddresses, passAddresses, releaseAddresses } from '../public-pool/index.ts'
import { lockApartness } from '../server-group/index.ts'
import { arrivingServerHolder, serverHolder } from './holders.ts'
import { findSizeChange } from './size-changes.ts'
import type { Database } from '../open.ts'
import type { Tables } from '../tables.ts'

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

/** What a move may ask of its target: a zone other than its own, nodes that it must not be. `node` is the very node. */
export type TargetRequest = MoveId &
  Partial<Pick<Demand, 'zone' | 'cpuPool' | 'excludedNodes'>> & { readonly node?: string | undefined }

/** Holds room for the server on the best node but its own, once: an earlier hold of the operation is the answer as it
 *  stands, one of
 *  another operation is given back. The server keeps apart from its group. `node` requests that very node.
 *  An operation that changes the server's size holds the larger of both sizes there.
 *  Throws the Problems `no_capacity` and `no_distinct_failure_domain` (503) when no node can take it,
 *  `state_not_allowed` (409) when it lives nowhere, and Unavailable while another operation changes its size;
 *  for another zone also `name_taken` (409), `no_free_address` (503), and 400 when its group is not for servers there.
 */
export async function reserveTarget(
  tx: Transaction<Tables>,
  { accountId, serverId, operationId, node, ...request }: TargetRequest,
  now: Date,
): Promise<MoveTarget> {
  const placement = await tx
    .selectFrom('placement')
    .selectAll()
    .where('account_id', '=', accountId)
    .where('server_id', '=', serverId)
    .forUpdate()
    .executeTakeFirst()
  if (placement === undefined)
    throw conflict('state_not_allowed', UNMADE, { resource: { type: 'server', id: serverId } })
  const known = await tx
    .selectFrom('placement_target')
    .selectAll()
    .where('account_id', '=', accountId)
    .where('server_id', '=', serverId)
    .executeTakeFirst()
  if (known?.operation_id === operationId) return { operationId, zone: known.zone, node: known.node }
  if (known !== undefined) await releaseTarget(tx, { accountId, serverId, operationId: known.operation_id })
  const change = await findSizeChange(tx, { accountId, serverId })
  if (change !== undefined && change.operationId !== operationId) throw new Unavailable('the size of the server')
  const room = change === undefined ? roomOf(placement) : largest(roomOf(placement), change.after)
  const { zone = placement.zone } = request
  const isLeaving = zone !== placement.zone
  // Before the room, as everywhere: whoever waits for the name may hold no room that others wait for.
  if (isLeaving) await claimHostnameThere(tx, { accountId, serverId, zone }, now)
  const demand: Demand = {
    accountId,
    zone,
    ...room,
    cpuPool: request.cpuPool,
    excludedNodes: [placement.node, ...(request.excludedNodes ?? [])],
    apartness:
      placement.group_id === null
        ? undefined
        : await lockApartness(tx, { accountId, groupId: placement.group_id }, { serverId, zone }),
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

/** Throws what `reserveTarget` would, and holds nothing. */
export async function requireTarget(db: Database, request: TargetRequest, now: Date): Promise<void> {
  const trial = await db.startTransaction().execute()
  try {
    await reserveTarget(trial, request, now)
  } finally {
    await trial.rollback().execute()
  }
}

/** The server lives on its target from now on, and what it held on the node and in the zone before is given back. Free
 *  when that was done before. */
export async function cutOverPlacement(
  tx: Transaction<Tables>,
  { accountId, serverId, operationId }: MoveId,
): Promise<void> {
  const placement = await tx
    .selectFrom('placement')
    .selectAll()
    .where('account_id', '=', accountId)
    .where('server_id', '=', serverId)
    .forUpdate()
    .executeTakeFirst()
  const target = await tx
    .deleteFrom('placement_target')
    .where('account_id', '=', accountId)
    .where('server_id', '=', serverId)
    .where('operation_id', '=', operationId)
    .returningAll()
    .executeTakeFirst()
  if (placement === undefined || target === undefined) return
  // A change of size that has ended meanwhile has no use for the larger room.
  const isGrowing = (await findSizeChange(tx, { accountId, serverId }))?.operationId === operationId
  const [before, held] = [roomOf(placement), roomOf(target)]
  const size = isGrowing ? held : before
  await tx
    .updateTable('placement')
    .set({ node: target.node, zone: target.zone, ...columnsOf(size) })
    .where('account_id', '=', accountId)
    .where('server_id', '=', serverId)
    .execute()
  await releaseRoom(tx, target.node, difference(held, size))
  if (placement.zone !== target.zone) {
    await passClaims(tx, arrivingHolderOf({ accountId, serverId }), serverHolder(serverId))
    await passAddresses(tx, arrivingHolderOf({ accountId, serverId }), serverHolder(serverId))
  }
  await releaseRoom(tx, placement.node, before)
}

/** The server stays where it is, and what was held for it elsewhere is given back. Free when that was done before. */
export async function releaseTarget(
  tx: Transaction<Tables>,
  { accountId, serverId, operationId }: MoveId,
): Promise<void> {
  const placement = await tx
    .selectFrom('placement')
    .selectAll()
    .where('account_id', '=', accountId)
    .where('server_id', '=', serverId)
    .forUpdate()
    .executeTakeFirst()
  const target = await tx
    .deleteFrom('placement_target')
    .where('account_id', '=', accountId)
    .where('server_id', '=', serverId)
    .where('operation_id', '=', operationId)
    .returningAll()
    .executeTakeFirst()
  if (placement === undefined || target === undefined) return
  if (placement.zone !== target.zone) {
    await releaseClaims(tx, arrivingHolderOf({ accountId, serverId }))
    await releaseAddresses(tx, arrivingHolderOf({ accountId, serverId }))
  }
  await releaseRoom(tx, target.node, roomOf(target))
}
