/** Routers of accounts: their names, their networks, and the address that they translate to. A network has one router.
 *  The row of a router is locked before those of networks, and those before pools. */
import type { Selectable, Transaction } from 'kysely'
import { type Gateway, type JoinedRange, overlapping } from '../../domain/network/rules.ts'
import { badField, conflict, type Problem, Unavailable } from '../../domain/problem.ts'
import { releaseQuotas, takeQuotas } from '../account/index.ts'
import { forgetUse } from '../claim/index.ts'
import { isHeldByOthers } from '../change/index.ts'
import { lockNetwork, type NetworkId } from '../network/index.ts'
import type { Queries } from '../kit/open.ts'
import { hasFreeAddress, type HeldAddress, listAddresses, releaseAddresses, takeAddress } from '../public-pool/index.ts'
import type { Tables } from '../tables.ts'
import { deleteWhere, selectWhere, updateWhere } from '../kit/where.ts'
import { requireFreeName } from '../kit/free-name.ts'

export interface RouterId {
  readonly accountId: string
  readonly routerId: string
}

/** The minimum that the router must have. */
export interface RouterDemand extends RouterId {
  readonly zone: string
  readonly name: string
  readonly natEnabled: boolean
  readonly networkIds: readonly string[]
}

/** Which networks are attached, and which detached. */
export interface RouterArrangement extends RouterId {
  readonly joining: readonly string[]
  /** All that are not joining, when undefined. */
  readonly leaving?: readonly string[] | undefined
}

export interface RouterNetwork extends JoinedRange {
  readonly networkId: string
  /** It is attached until it is released. */
  readonly isLeaving: boolean
  /** The gateway addresses of the network's edge; absent when there is none. */
  readonly gateway?: Gateway
}

export interface RouterClaim {
  readonly zone: string
  readonly name: string
  readonly natEnabled: boolean
  /** It accepts nothing new. */
  readonly isEnding: boolean
  /** In the order of their ids. */
  readonly networks: readonly RouterNetwork[]
  /** The address that it translates to. */
  readonly publicAddress: HeldAddress | undefined
}

const holdingOf = ({ accountId, routerId }: RouterId) => ({ accountId, holder: `router/${routerId}` as const })

/** Claims what the router lacks of the demand and releases nothing: networks that are being detached stay until
 *  `trimRouter`. Throws the Problem `quota_exceeded` (422), and what `renameRouter`, `arrangeRouter` and `setNat`
 *  throw. */
export async function claimRouter(tx: Transaction<Tables>, demand: RouterDemand): Promise<RouterClaim> {
  const { accountId, routerId, zone, name, natEnabled, networkIds } = demand
  await takeQuotas(tx, { ...holdingOf(demand), amounts: { routers: 1 } })
  await requireFreeName(tx, 'router', { account_id: demand.accountId, id: demand.routerId, zone: demand.zone, name })
  await tx
    .insertInto('router')
    .values({ account_id: accountId, id: routerId, zone, name, nat_enabled: natEnabled })
    .onConflict((clash) => clash.columns(['account_id', 'id']).doUpdateSet({ name }))
    .execute()
  await arrangeRouter(tx, { accountId, routerId, joining: networkIds })
  await setNat(tx, { accountId, routerId, natEnabled })
  const claim = await findRouter(tx, demand)
  if (claim === undefined) throw new Error('a router that was just claimed is not there')
  return claim
}

/** Attaches networks to the router, and detaches others, which it keeps until `trimRouter`. Does nothing when that is
 *  so already, and while nothing of the router is claimed. Throws the Problem `in_use` (409) for a network of another
 *  router or with a range that overlaps, and for one that a floating IP needs there; 404 for one that does not exist,
 *  400 for one of another zone; Unavailable for a router that is ending. */
export async function arrangeRouter(
  tx: Transaction<Tables>,
  { joining, leaving, ...id }: RouterArrangement,
): Promise<void> {
  const router = await lockStaying(tx, id)
  if (router === undefined) return
  const leavers = leaving ?? (await networksAt(tx, id)).map(({ networkId }) => networkId)
  for (const networkId of leavers.filter((one) => !joining.includes(one)))
    await setLeaving(tx, { ...id, networkId }, true)
  for (const networkId of [...new Set(joining)].sort()) await joinNetwork(tx, { ...id, networkId, zone: router.zone })
  await requireForwarding(tx, id)
}

/** Throws the Problem `in_use` (409) while a floating IP points to a server in a network that leaves the router, or
 *  that has no NAT there. */
async function requireForwarding(tx: Transaction<Tables>, { accountId, routerId }: RouterId): Promise<void> {
  const floating = await tx
    .selectFrom('floating_ip')
    .innerJoin('router_network as at', (join) =>
      join.onRef('at.account_id', '=', 'floating_ip.account_id').onRef('at.network_id', '=', 'floating_ip.network_id'),
    )
    .innerJoin('router', (join) =>
      join.onRef('router.account_id', '=', 'at.account_id').onRef('router.id', '=', 'at.router_id'),
    )
    .select('floating_ip.id')
    .where('router.account_id', '=', accountId)
    .where('router.id', '=', routerId)
    .where((row) => row.or([row('at.is_ending', '=', true), row('router.nat_enabled', '=', false)]))
    .orderBy('floating_ip.id')
    .executeTakeFirst()
  if (floating !== undefined)
    throw conflict('in_use', 'A floating IP is assigned to a server behind the router. Unassign it first.', {
      resource: { type: 'floating_ip', id: floating.id },
    })
}

async function giveAddress(tx: Transaction<Tables>, id: RouterId & { readonly zone: string }): Promise<void> {
  if ((await addressOf(tx, id)) !== undefined) return
  await takeAddress(tx, { ...holdingOf(id), zone: id.zone, use: await natUse(tx, id.zone) })
}

/** The network was not attached after all: it leaves that router, unless another change that attaches one is under way
 *  there, or `isDesired` says that one was written. */
export async function withdrawJoin(
  tx: Transaction<Tables>,
  id: RouterId & NetworkId,
  isDesired: boolean,
): Promise<void> {
  await lockRouter(tx, id)
  if (await isHeldByOthers(tx, changeOf(id, 'router.attach_network'), isDesired)) return
  await deleteWhere(tx, 'router_network', {
    account_id: id.accountId,
    network_id: id.networkId,
    router_id: id.routerId,
  }).execute()
}

const changeOf = ({ accountId, routerId }: RouterId, action: string) => ({
  accountId,
  resource: { type: 'router', id: routerId },
  action,
})

/** The network was not detached after all: it stays, unless another change that detaches one is under way there, or
 *  `isDesired` says that one was written. */
export async function withdrawLeave(
  tx: Transaction<Tables>,
  id: RouterId & NetworkId,
  isDesired: boolean,
): Promise<void> {
  await lockRouter(tx, id)
  if (await isHeldByOthers(tx, changeOf(id, 'router.detach_network'), isDesired)) return
  await setLeaving(tx, id, false)
}

/** After a change of name or NAT that was not written: restores the desired state of the router, unless another change
 *  is under way. Does nothing for a deleted router. Throws as `renameRouter` and `setNat`. */
export async function withdrawRouterUpdate(
  tx: Transaction<Tables>,
  id: RouterId,
  desired: { readonly name: string; readonly natEnabled: boolean } | undefined,
): Promise<void> {
  await lockNames(tx, id)
  const router = await lockRouter(tx, id)
  if (router === undefined || (await isHeldByOthers(tx, changeOf(id, 'router.update'), false))) return
  if (desired === undefined) return
  await renameRouter(tx, id, desired.name)
  if (!router.is_ending && (await setNat(tx, { ...id, natEnabled: desired.natEnabled }))) await trimAddress(tx, id)
}

/** Returns whether that is a change. The router keeps an address that it gives up until `trimRouter`. Does nothing
 *  while nothing of the router is claimed. Throws the Problems `no_free_address` (503), and `in_use` (409) while a
 *  floating IP needs its NAT; Unavailable for one that is ending. */
export async function setNat(
  tx: Transaction<Tables>,
  { natEnabled, ...id }: RouterId & { readonly natEnabled: boolean },
): Promise<boolean> {
  const router = await lockStaying(tx, id)
  if (router === undefined) return false
  const isChange = router.nat_enabled !== natEnabled
  if (isChange) {
    await updateWhere(tx, 'router', { account_id: id.accountId, id: id.routerId })
      .set({ nat_enabled: natEnabled })
      .execute()
    await requireForwarding(tx, id)
  }
  if (natEnabled) await giveAddress(tx, { ...id, zone: router.zone })
  return isChange
}

/** Undefined while nothing of it is claimed. Throws Unavailable for one that is ending. */
async function lockStaying(tx: Transaction<Tables>, id: RouterId): Promise<Selectable<Tables['router']> | undefined> {
  const router = await lockRouter(tx, id)
  if (router?.is_ending === true) throw new Unavailable('the router, which is about to be deleted')
  return router
}

const routerAt = (tx: Transaction<Tables>, { accountId, networkId }: NetworkId) =>
  selectWhere(tx, 'router_network', { account_id: accountId, network_id: networkId })
    .select('router_id')
    .executeTakeFirst()

async function setLeaving(
  tx: Transaction<Tables>,
  { accountId, routerId, networkId }: RouterId & NetworkId,
  isLeaving: boolean,
): Promise<void> {
  await updateWhere(tx, 'router_network', { account_id: accountId, network_id: networkId, router_id: routerId })
    .set({ is_ending: isLeaving })
    .execute()
}

/** 409 for a network that the router has. */
export const atRouter = (routerId: string): Problem =>
  conflict('in_use', 'The network is at a router already. Detach it there first.', {
    resource: { type: 'router', id: routerId },
  })

/** The pools of the zone from which routers get their address. */
const natUse = async (tx: Transaction<Tables>, zone: string): Promise<'edge' | 'floating_ipv4'> =>
  (await hasFreeAddress(tx, zone, 'edge')) ? 'edge' : 'floating_ipv4'

async function joinNetwork(
  tx: Transaction<Tables>,
  joining: RouterId & NetworkId & { readonly zone: string },
): Promise<void> {
  const { accountId, networkId, routerId, zone } = joining
  const network = await lockNetwork(tx, joining)
  if (network.zone !== zone)
    throw badField('networkIds', `the network is in zone ${network.zone}, the router in zone ${zone}`)
  const others = await networksAt(tx, joining)
  const [overlap] = overlapping(
    network.ipv4Cidr,
    others
      .filter((other) => other.networkId !== networkId && !other.isLeaving)
      .map((other) => ({ cidr: other.ipv4Cidr, id: other.networkId })),
  )
  if (overlap !== undefined)
    throw conflict('in_use', `The range of the network overlaps ${overlap.cidr}, which is at the router already.`, {
      resource: { type: 'network', id: overlap.id },
    })
  const row = await tx
    .insertInto('router_network')
    .values({ account_id: accountId, network_id: networkId, router_id: routerId })
    .onConflict((clash) => clash.columns(['account_id', 'network_id']).doNothing())
    .executeTakeFirst()
  if (row.numInsertedOrUpdatedRows !== 0n) return
  const at = await routerAt(tx, joining)
  if (at !== undefined && at.router_id !== routerId) throw atRouter(at.router_id)
  await setLeaving(tx, joining, false)
}

/** Releases networks and the address that the router must give up; called once nothing uses them any longer. */
export async function trimRouter(tx: Transaction<Tables>, id: RouterId): Promise<void> {
  await lockRouter(tx, id)
  await deleteWhere(tx, 'router_network', {
    account_id: id.accountId,
    router_id: id.routerId,
    is_ending: true,
  }).execute()
  await trimAddress(tx, id)
}

/** Releases the address of a router without NAT. */
async function trimAddress(tx: Transaction<Tables>, id: RouterId): Promise<void> {
  const router = await lockRouter(tx, id)
  if (router?.nat_enabled === false) await releaseAddresses(tx, holdingOf(id))
}

const lockRouter = (
  tx: Transaction<Tables>,
  { accountId, routerId }: RouterId,
): Promise<Selectable<Tables['router']> | undefined> =>
  selectWhere(tx, 'router', { account_id: accountId, id: routerId }).selectAll().forUpdate().executeTakeFirst()

/** The lock of the account's quota row serializes changes of names. */
const lockNames = (tx: Transaction<Tables>, { accountId }: RouterId) =>
  selectWhere(tx, 'account_quota', { account_id: accountId, name: 'routers' }).select('name').forUpdate().execute()

/** Throws the Problem `name_taken` (409). Does nothing when it has that name, or does not exist. */
export async function renameRouter(tx: Transaction<Tables>, id: RouterId, name: string): Promise<void> {
  await lockNames(tx, id)
  const known = await lockRouter(tx, id)
  if (known === undefined || known.name === name) return
  await requireFreeName(tx, 'router', { account_id: id.accountId, id: id.routerId, zone: known.zone, name })
  await updateWhere(tx, 'router', { account_id: id.accountId, id: id.routerId }).set({ name }).execute()
}

const networksAt = async (db: Queries, { accountId, routerId }: RouterId): Promise<readonly RouterNetwork[]> =>
  (
    await db
      .selectFrom('router_network as at')
      .innerJoin('network', (join) =>
        join.onRef('network.account_id', '=', 'at.account_id').onRef('network.id', '=', 'at.network_id'),
      )
      .leftJoin('edge', (join) =>
        join.onRef('edge.account_id', '=', 'at.account_id').onRef('edge.network_id', '=', 'at.network_id'),
      )
      .select(['at.network_id', 'at.is_ending', 'network.ipv4_cidr', 'network.ipv6_prefix'])
      .select(['edge.gateway_ipv4', 'edge.gateway_ipv6'])
      .where('at.account_id', '=', accountId)
      .where('at.router_id', '=', routerId)
      .orderBy('at.network_id')
      .execute()
  ).map(({ network_id, is_ending, ipv4_cidr, ipv6_prefix, gateway_ipv4: ipv4, gateway_ipv6: ipv6 }) => ({
    networkId: network_id,
    ipv4Cidr: ipv4_cidr,
    ipv6Prefix: ipv6_prefix,
    isLeaving: is_ending,
    ...(ipv4 === null || ipv6 === null ? {} : { gateway: { ipv4, ipv6 } }),
  }))

const addressOf = async (db: Queries, id: RouterId): Promise<HeldAddress | undefined> =>
  (await listAddresses(db, holdingOf(id))).find(({ isCurrent }) => isCurrent)

/** Undefined when nothing is claimed. */
export async function findRouter(db: Queries, id: RouterId): Promise<RouterClaim | undefined> {
  const row = await selectWhere(db, 'router', { account_id: id.accountId, id: id.routerId })
    .select(['zone', 'name', 'nat_enabled', 'is_ending'])
    .executeTakeFirst()
  if (row === undefined) return undefined
  const { zone, name, nat_enabled: natEnabled, is_ending: isEnding } = row
  return {
    zone,
    name,
    natEnabled,
    isEnding,
    networks: await networksAt(db, id),
    publicAddress: await addressOf(db, id),
  }
}

/** The router of the network, with its other networks; undefined when there is none. */
export async function findRouterOf(
  db: Queries,
  { accountId, networkId }: NetworkId,
): Promise<(RouterClaim & { readonly routerId: string }) | undefined> {
  const row = await selectWhere(db, 'router_network', { account_id: accountId, network_id: networkId })
    .select('router_id')
    .executeTakeFirst()
  const claim = row && (await findRouter(db, { accountId, routerId: row.router_id }))
  return claim && { ...claim, routerId: row.router_id }
}

/** The router with NAT of the network, unless the network is leaving it, locked until the transaction ends: a floating
 *  IP for a server in the network needs it. Undefined when there is none. */
export async function lockNatRouter(
  tx: Transaction<Tables>,
  { accountId, networkId }: NetworkId,
): Promise<string | undefined> {
  const row = await tx
    .selectFrom('router')
    .innerJoin('router_network as at', (join) =>
      join.onRef('at.account_id', '=', 'router.account_id').onRef('at.router_id', '=', 'router.id'),
    )
    .select('router.id')
    .where('at.account_id', '=', accountId)
    .where('at.network_id', '=', networkId)
    .where('at.is_ending', '=', false)
    .where('router.nat_enabled', '=', true)
    .where('router.is_ending', '=', false)
    .forUpdate('router')
    .executeTakeFirst()
  return row?.id
}

/** From now on it accepts nothing new. Does nothing when it does not exist. Throws the Problem `in_use` (409) while it
 *  has networks. */
export async function endRouter(tx: Transaction<Tables>, id: RouterId): Promise<void> {
  await lockRouter(tx, id)
  const [network] = await networksAt(tx, id)
  if (network !== undefined) throw routerInUse(network.networkId)
  await updateWhere(tx, 'router', { account_id: id.accountId, id: id.routerId }).set({ is_ending: true }).execute()
}

const routerInUse = (networkId: string): Problem =>
  conflict('in_use', 'Networks are at the router. Detach them first.', {
    resource: { type: 'network', id: networkId },
  })

/** A deletion that was claimed is not made after all: the router accepts new networks again, unless another deletion is
 *  under way, or `isDesired` says that one was written. */
export async function withdrawRouterEnd(tx: Transaction<Tables>, id: RouterId, isDesired: boolean): Promise<void> {
  const router = await lockRouter(tx, id)
  if (router === undefined || (await isHeldByOthers(tx, changeOf(id, 'router.delete'), isDesired))) return
  await updateWhere(tx, 'router', { account_id: id.accountId, id: id.routerId }).set({ is_ending: false }).execute()
}

/** With all its networks. Idempotent. */
export async function releaseRouter(tx: Transaction<Tables>, id: RouterId): Promise<void> {
  const { accountId, routerId } = id
  await releaseQuotas(tx, holdingOf(id))
  await forgetUse(tx, holdingOf(id))
  await deleteWhere(tx, 'router_network', { account_id: accountId, router_id: routerId }).execute()
  await deleteWhere(tx, 'router', { account_id: accountId, id: routerId }).execute()
  await releaseAddresses(tx, holdingOf(id))
}
