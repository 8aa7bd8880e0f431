/** Private networks of accounts: their names, their ranges, and whether something holds them. A transaction that puts
 *  something into a network locks its row first, so that a network is never deleted while it is used. */
import type { Selectable, Transaction } from 'kysely'
import { freeRange, type JoinedRange, ulaPrefix } from '../../domain/network/rules.ts'
import { conflict, notFound, type Problem, unavailable } from '../../domain/problem.ts'
import type { Random } from '../../kit/sys/random.ts'
import { releaseQuotas, takeQuotas } from '../account/index.ts'
import { isHeldByOthers } from '../change/index.ts'
import type { Queries } from '../kit/open.ts'
import type { Tables } from '../tables.ts'
import { deleteWhere, selectWhere, updateWhere } from '../kit/where.ts'
import { requireFreeName } from '../kit/free-name.ts'

export interface NetworkId {
  readonly accountId: string
  readonly networkId: string
}

export interface NetworkDemand extends NetworkId {
  readonly zone: string
  readonly name: string
  /** A free one of the account when absent. */
  readonly ipv4Cidr?: string | undefined
}

export interface NetworkClaim extends JoinedRange {
  readonly zone: string
  readonly name: string
  /** It accepts nothing new. */
  readonly isEnding: boolean
}

const PREFIX_TRIES_MAXIMUM = 16
const RANDOM_BYTES = 7
const holderOf = (networkId: string): `network/${string}` => `network/${networkId}`

/** Does nothing when it is claimed already. Throws the Problems `quota_exceeded` (422), `name_taken` (409), and
 *  `no_free_address` (503) when no range is left to choose. */
export async function claimNetwork(
  tx: Transaction<Tables>,
  demand: NetworkDemand,
  random: Random,
): Promise<NetworkClaim> {
  const { accountId, networkId, zone, name } = demand
  const known = await findNetwork(tx, demand)
  if (known !== undefined) return known
  // The lock of the quota's row lets the account choose one range at a time.
  await takeQuotas(tx, { accountId, holder: holderOf(networkId), amounts: { networks: 1 } })
  const ipv4Cidr = demand.ipv4Cidr ?? freeRange(await listRanges(tx, { accountId, zone }))
  if (ipv4Cidr === undefined)
    throw unavailable('no_free_address', 'The networks of the account leave no range of 256 addresses free.')
  await requireFreeName(tx, 'network', { account_id: demand.accountId, id: demand.networkId, zone: demand.zone, name })
  for (let tries = 0; tries < PREFIX_TRIES_MAXIMUM; tries++) {
    const row = await tx
      .insertInto('network')
      .values({
        account_id: accountId,
        id: networkId,
        zone,
        name,
        ipv4_cidr: ipv4Cidr,
        ipv6_prefix: ulaPrefix(random.bytes(RANDOM_BYTES)),
      })
      .onConflict((clash) => clash.column('ipv6_prefix').doNothing())
      .returningAll()
      .executeTakeFirst()
    if (row !== undefined) return toClaim(row)
  }
  throw new Error(`no free IPv6 prefix in ${PREFIX_TRIES_MAXIMUM} tries`)
}

/** After a change of the name that was not written: restores its desired name, unless another change is under way. Does
 *  nothing for a deleted network. Throws as `renameNetwork`. */
export async function withdrawNetworkName(
  tx: Transaction<Tables>,
  id: NetworkId,
  name: string | undefined,
): Promise<void> {
  await lockQuota(tx, id.accountId)
  const change = { accountId: id.accountId, resource: { type: 'network', id: id.networkId }, action: 'network.update' }
  if (await isHeldByOthers(tx, change, false)) return
  if (name !== undefined) await renameNetwork(tx, id, name)
}

/** Throws the Problem `name_taken` (409). Does nothing when it has that name, or does not exist. */
export async function renameNetwork(tx: Transaction<Tables>, id: NetworkId, name: string): Promise<void> {
  await lockQuota(tx, id.accountId)
  const known = await findNetwork(tx, id)
  if (known === undefined || known.name === name) return
  await requireFreeName(tx, 'network', { account_id: id.accountId, id: id.networkId, zone: known.zone, name })
  await updateWhere(tx, 'network', { account_id: id.accountId, id: id.networkId }).set({ name }).execute()
}

/** Serializes changes of names; always taken before the lock of a network. */
const lockQuota = (tx: Transaction<Tables>, accountId: string) =>
  selectWhere(tx, 'account_quota', { account_id: accountId, name: 'networks' }).select('name').forUpdate().execute()

const listRanges = async (
  db: Queries,
  { accountId, zone }: { readonly accountId: string; readonly zone: string },
): Promise<readonly string[]> =>
  (await selectWhere(db, 'network', { account_id: accountId, zone }).select('ipv4_cidr').execute()).map(
    ({ ipv4_cidr }) => ipv4_cidr,
  )

const toClaim = ({
  zone,
  name,
  ipv4_cidr,
  ipv6_prefix,
  is_ending: isEnding,
}: Selectable<Tables['network']>): NetworkClaim => ({
  zone,
  name,
  isEnding,
  ipv4Cidr: ipv4_cidr,
  ipv6Prefix: ipv6_prefix,
})

/** Undefined when nothing is claimed. */
export async function findNetwork(db: Queries, { accountId, networkId }: NetworkId): Promise<NetworkClaim | undefined> {
  const row = await rowOf(db, { accountId, networkId }).executeTakeFirst()
  return row && toClaim(row)
}

const rowOf = (db: Queries, { accountId, networkId }: NetworkId) =>
  selectWhere(db, 'network', { account_id: accountId, id: networkId }).selectAll()

/** The network, locked until the transaction ends. Several are locked in the order of their ids. Throws 404 when it is
 *  not the account's, or is being deleted. */
export async function lockNetwork(tx: Transaction<Tables>, { accountId, networkId }: NetworkId): Promise<NetworkClaim> {
  const row = await rowOf(tx, { accountId, networkId }).forUpdate().executeTakeFirst()
  if (row === undefined || row.is_ending) throw notFound('network')
  return toClaim(row)
}

/** From now on it accepts nothing new. Does nothing when it does not exist. Throws the Problem `in_use` (409), which
 *  names something that is in it. */
export async function endNetwork(tx: Transaction<Tables>, { accountId, networkId }: NetworkId): Promise<void> {
  await updateWhere(tx, 'network', { account_id: accountId, id: networkId }).set({ is_ending: true }).execute()
  const router = await selectWhere(tx, 'router_network', { account_id: accountId, network_id: networkId })
    .select('router_id')
    .executeTakeFirst()
  if (router !== undefined) throw networkInUse('router', router.router_id)
  for (const { table, message } of HOLDERS) {
    const holder = await tx
      .selectFrom(table)
      .select('id')
      .where('account_id', '=', accountId)
      .where('network_id', '=', networkId)
      .executeTakeFirst()
    if (holder !== undefined) throw conflict('in_use', message, { resource: { type: table, id: holder.id } })
  }
  const server = await selectWhere(tx, 'network_interface', { account_id: accountId, network_id: networkId })
    .select('server_id')
    .orderBy('server_id')
    .executeTakeFirst()
  if (server !== undefined) throw networkInUse('server', server.server_id)
}

/** Resources that were created in a network, apart from servers and routers. */
const HOLDERS = [
  { table: 'edge', message: 'The network has an edge. Delete it first.' },
  { table: 'load_balancer', message: 'A load balancer is in the network. Delete it first.' },
  { table: 'database', message: 'A database is in the network. Delete it first.' },
  { table: 'kubernetes_cluster', message: 'A Kubernetes cluster is in the network. Delete it first.' },
] as const

const networkInUse = (type: 'router' | 'server', id: string): Problem =>
  conflict('in_use', `A ${type} is in the network. Detach it first.`, { resource: { type, id } })

/** A deletion that was claimed is not made after all: the network accepts new resources again, unless another deletion
 *  is under way, or `isDesired` says that one was written. */
export async function withdrawNetworkEnd(
  tx: Transaction<Tables>,
  { accountId, networkId }: NetworkId,
  isDesired: boolean,
): Promise<void> {
  const row = await rowOf(tx, { accountId, networkId }).forUpdate().executeTakeFirst()
  const change = { accountId, resource: { type: 'network', id: networkId }, action: 'network.delete' }
  if (row === undefined || (await isHeldByOthers(tx, change, isDesired))) return
  await updateWhere(tx, 'network', { account_id: accountId, id: networkId }).set({ is_ending: false }).execute()
}

export interface ZonedClaim {
  readonly accountId: string
  readonly id: string
  readonly zone: string
}

/** Resources with a row in the table. */
export const listZonedRows = async (
  db: Queries,
  table: 'network' | 'router' | 'floating_ip',
): Promise<readonly ZonedClaim[]> =>
  (await db.selectFrom(table).select(['account_id', 'id', 'zone']).execute()).map(({ account_id, id, zone }) => ({
    accountId: account_id,
    id,
    zone,
  }))

/** Idempotent. */
export async function releaseNetwork(tx: Transaction<Tables>, { accountId, networkId }: NetworkId): Promise<void> {
  await releaseQuotas(tx, { accountId, holder: holderOf(networkId) })
  await deleteWhere(tx, 'network', { account_id: accountId, id: networkId }).execute()
}
