/** The move of a server from one node to another, as PostgreSQL sees it: room is held on both until the server lives on exactly one.
 *  Which node a server is on is the row of `placement`; `switchPlacement` is the moment at which it changes. A host name and public addresses
 *  are of one zone: a server that goes to another holds those of both until then. */
import type { Transaction } from 'kysely'
import type { Demand } from '../domain/placement.ts'
import { Unavailable } from '../domain/problem.ts'
import { claimHostname, findHostname, passClaims, releaseClaims } from './claims.ts'
import { giveBackRoom, listCandidates, takeBestRoom } from './placement.ts'
import { listAddresses, passAddresses, releaseAddresses } from './public-pools.ts'
import { claimAddresses } from './server-claims.ts'
import { lockApartness } from './server-groups.ts'
import { arrivingServerHolder, serverHolder } from './server-holders.ts'
import type { Database } from './open.ts'
import type { Tables } from './tables.ts'

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
export type TargetWish = MoveId & Partial<Pick<Demand, 'zone' | 'cpuPool' | 'excludedNodes'>> & { readonly node?: string | undefined }

/** Holds room for the server on the best node but its own, once: an earlier hold of the operation is the answer as it stands, one of
 *  another operation is given back. The server needs its placement, and keeps apart from its group. `node` asks for that very node.
 *  Throws the Problems `no_capacity` and `no_distinct_failure_domain` (503) when no node can take it, and Unavailable while its size is being changed;
 *  for another zone also `name_taken` (409), `no_free_address` (503), and 400 when its group is not for servers there. */
export async function reserveTarget(
  tx: Transaction<Tables>, { accountId, serverId, operationId, node, ...wish }: TargetWish, now: Date,
): Promise<MoveTarget> {
  const placement = await tx.selectFrom('placement').selectAll().where('account_id', '=', accountId).where('server_id', '=', serverId).forUpdate().executeTakeFirstOrThrow()
  const known = await tx.selectFrom('placement_target').selectAll().where('account_id', '=', accountId).where('server_id', '=', serverId).executeTakeFirst()
  if (known?.operation_id === operationId) return { operationId, zone: known.zone, node: known.node }
  if (known !== undefined) await releaseTarget(tx, { accountId, serverId, operationId: known.operation_id })
  // Room is held by the size of the server: it must be the same when the room is given back.
  const isChanging = await tx.selectFrom('size_change').select('operation_id').where('account_id', '=', accountId).where('server_id', '=', serverId).executeTakeFirst()
  if (isChanging !== undefined) throw new Unavailable('the size of the server')
  const { zone = placement.zone } = wish
  const isLeaving = zone !== placement.zone
  // Before the room, as everywhere: whoever waits for the name may hold no room that others wait for.
  if (isLeaving) await claimHostnameThere(tx, { accountId, serverId, zone }, now)
  const demand: Demand = {
    accountId, zone, cores: placement.cores, memoryMebibytes: placement.memory_mebibytes, storageGibibytes: placement.storage_gibibytes,
    cpuPool: wish.cpuPool, excludedNodes: [placement.node, ...(wish.excludedNodes ?? [])],
    apartness: placement.group_id === null ? undefined : await lockApartness(tx, { accountId, groupId: placement.group_id }, { serverId, zone }),
  }
  const candidates = async () => (await listCandidates(tx, demand.zone)).filter((candidate) => node === undefined || candidate.node === node)
  const target = await takeBestRoom(tx, demand, candidates)
  await tx.insertInto('placement_target').values({ account_id: accountId, server_id: serverId, operation_id: operationId, zone: demand.zone, node: target, reserved_at: now }).execute()
  if (isLeaving) {
    const publicIpv4 = (await listAddresses(tx, { accountId, holder: serverHolder(serverId) })).some(({ use }) => use === 'server_ipv4')
    await claimAddresses(tx, holderThere({ accountId, serverId }), { zone, publicIpv4 })
  }
  return { operationId, zone: demand.zone, node: target }
}

async function claimHostnameThere(tx: Transaction<Tables>, { zone, ...server }: Pick<MoveId, 'accountId' | 'serverId'> & { readonly zone: string }, now: Date): Promise<void> {
  const hostname = await findHostname(tx, { accountId: server.accountId, holder: serverHolder(server.serverId) })
  if (hostname === undefined) throw new Error('a server that holds room has a host name')
  await claimHostname(tx, { ...holderThere(server), zone, hostname }, now)
}

const holderThere = ({ accountId, serverId }: Pick<MoveId, 'accountId' | 'serverId'>) => ({ accountId, holder: arrivingServerHolder(serverId) })

/** Throws what `reserveTarget` would, and holds nothing. */
export async function requireTarget(db: Database, wish: TargetWish, now: Date): Promise<void> {
  const trial = await db.startTransaction().execute()
  try {
    await reserveTarget(trial, wish, now)
  } finally {
    await trial.rollback().execute()
  }
}

/** The server lives on its target from now on, and what it held on the node and in the zone before is given back. Free when that was done before. */
export async function switchPlacement(tx: Transaction<Tables>, { accountId, serverId, operationId }: MoveId): Promise<void> {
  const placement = await tx.selectFrom('placement').selectAll().where('account_id', '=', accountId).where('server_id', '=', serverId).forUpdate().executeTakeFirst()
  const target = await tx.deleteFrom('placement_target').where('account_id', '=', accountId).where('server_id', '=', serverId).where('operation_id', '=', operationId).returningAll().executeTakeFirst()
  if (placement === undefined || target === undefined) return
  await tx.updateTable('placement').set({ node: target.node, zone: target.zone }).where('account_id', '=', accountId).where('server_id', '=', serverId).execute()
  if (placement.zone !== target.zone) {
    await passClaims(tx, holderThere({ accountId, serverId }), serverHolder(serverId))
    await passAddresses(tx, holderThere({ accountId, serverId }), serverHolder(serverId))
  }
  await giveBackRoom(tx, placement.node, { cores: placement.cores, memoryMebibytes: placement.memory_mebibytes, storageGibibytes: placement.storage_gibibytes })
}

/** The server stays where it is, and what was held for it elsewhere is given back. Free when that was done before. */
export async function releaseTarget(tx: Transaction<Tables>, { accountId, serverId, operationId }: MoveId): Promise<void> {
  const placement = await tx.selectFrom('placement').selectAll().where('account_id', '=', accountId).where('server_id', '=', serverId).forUpdate().executeTakeFirst()
  const target = await tx.deleteFrom('placement_target').where('account_id', '=', accountId).where('server_id', '=', serverId).where('operation_id', '=', operationId).returningAll().executeTakeFirst()
  if (placement === undefined || target === undefined) return
  if (placement.zone !== target.zone) {
    await releaseClaims(tx, holderThere({ accountId, serverId }))
    await releaseAddresses(tx, holderThere({ accountId, serverId }))
  }
  await giveBackRoom(tx, target.node, { cores: placement.cores, memoryMebibytes: placement.memory_mebibytes, storageGibibytes: placement.storage_gibibytes })
}
