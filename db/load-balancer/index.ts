/** Load balancers of accounts: their names, the networks that they hold, their addresses, and certificates with sealed
 *  keys. Locks are taken in one order: the quota of the account, the network, and the pool of addresses last. */
import type { Transaction } from 'kysely'
import { badField } from '../../domain/problem.ts'
import type { PoolUse } from '../../domain/public-pool/rules.ts'
import { releaseQuotas, takeQuotas } from '../account/index.ts'
import { isHeldByOthers } from '../change/index.ts'
import { forgetUse } from '../claim/index.ts'
import { lockNetwork } from '../network/index.ts'
import type { Queries } from '../kit/open.ts'
import { claimAddresses, type HeldAddress, listAddresses, releaseAddresses } from '../public-pool/index.ts'
import {
  claimSharedAddress,
  findSharedAddress,
  releaseSharedAddresses,
  type SharedAddress,
} from '../shared-address/index.ts'
import type { Tables } from '../tables.ts'
import { deleteWhere, selectWhere, updateWhere } from '../kit/where.ts'
import { requireFreeName } from '../kit/free-name.ts'

export interface LoadBalancerId {
  readonly accountId: string
  readonly loadBalancerId: string
}

export interface LoadBalancerDemand extends LoadBalancerId {
  readonly zone: string
  readonly name: string
  readonly networkId: string
  readonly publicIpv4: boolean
}

export interface LoadBalancerClaim {
  readonly zone: string
  readonly name: string
  readonly networkId: string
  readonly ipv4Cidr: string
  readonly ipv6Prefix: string
  /** In its network; its machines move it between them. */
  readonly shared: SharedAddress
  readonly publicIpv4: HeldAddress | undefined
  /** Its first address is the balancer's; none where the zone had no prefixes to allocate when it was claimed. */
  readonly publicIpv6: HeldAddress | undefined
}

const holdingOf = ({ accountId, loadBalancerId }: LoadBalancerId) => ({
  accountId,
  holder: `load_balancer/${loadBalancerId}` as const,
})

/** Does nothing when it is claimed already. Throws 404 for an unknown network, 400 for one of another zone, and the
 *  Problems `quota_exceeded` (422), `name_taken` (409) and `no_free_address` (503). */
export async function claimLoadBalancer(
  tx: Transaction<Tables>,
  demand: LoadBalancerDemand,
): Promise<LoadBalancerClaim> {
  const { accountId, loadBalancerId: id, zone, name, networkId, publicIpv4 } = demand
  const known = await findLoadBalancer(tx, demand)
  if (known !== undefined) return known
  await takeQuotas(tx, { ...holdingOf(demand), amounts: { load_balancers: 1 } })
  const network = await lockNetwork(tx, { accountId, networkId })
  if (network.zone !== zone) throw badField('networkId', `is in zone ${network.zone}, not in ${zone}`)
  await requireFreeName(tx, 'load_balancer', nameOf(demand))
  await tx
    .insertInto('load_balancer')
    .values({ account_id: accountId, id, zone, name, network_id: networkId })
    .execute()
  await claimSharedAddress(tx, { ...holdingOf(demand), networkId })
  if (publicIpv4) await claimAddresses(tx, holdingOf(demand), { zone, publicIpv4 })
  const claim = await findLoadBalancer(tx, demand)
  if (claim === undefined) throw new Error('a load balancer that was just claimed is not there')
  return claim
}

/** Unique in the zone. */
const nameOf = ({
  accountId,
  loadBalancerId: id,
  zone,
  name,
}: Pick<LoadBalancerDemand, keyof LoadBalancerId | 'zone' | 'name'>) => ({
  account_id: accountId,
  id,
  zone,
  name,
})

/** Throws the Problem `name_taken` (409). Does nothing when it has that name, or does not exist. */
export async function renameLoadBalancer(tx: Transaction<Tables>, id: LoadBalancerId, name: string): Promise<void> {
  await selectWhere(tx, 'account_quota', { account_id: id.accountId, name: 'load_balancers' })
    .select('name')
    .forUpdate()
    .execute()
  const known = await findLoadBalancer(tx, id)
  if (known === undefined || known.name === name) return
  await requireFreeName(tx, 'load_balancer', nameOf({ ...id, zone: known.zone, name }))
  await updateWhere(tx, 'load_balancer', { account_id: id.accountId, id: id.loadBalancerId }).set({ name }).execute()
}

/** After a change of name that was not written: restores the desired name of the load balancer, unless another change
 *  is under way. Throws as `renameLoadBalancer`. */
export async function withdrawLoadBalancerName(
  tx: Transaction<Tables>,
  { accountId, loadBalancerId }: LoadBalancerId,
  name: string | undefined,
): Promise<void> {
  const resource = { type: 'load_balancer', id: loadBalancerId }
  if (await isHeldByOthers(tx, { accountId, resource, action: 'load_balancer.update' }, false)) return
  if (name !== undefined) await renameLoadBalancer(tx, { accountId, loadBalancerId }, name)
}

/** Undefined when nothing is claimed. */
export async function findLoadBalancer(db: Queries, id: LoadBalancerId): Promise<LoadBalancerClaim | undefined> {
  const { accountId, loadBalancerId } = id
  const row = await db
    .selectFrom('load_balancer')
    .innerJoin('network', (join) =>
      join
        .onRef('network.account_id', '=', 'load_balancer.account_id')
        .onRef('network.id', '=', 'load_balancer.network_id'),
    )
    .select([
      'load_balancer.zone',
      'load_balancer.name',
      'load_balancer.network_id',
      'network.ipv4_cidr',
      'network.ipv6_prefix',
    ])
    .where('load_balancer.account_id', '=', accountId)
    .where('load_balancer.id', '=', loadBalancerId)
    .executeTakeFirst()
  if (row === undefined) return undefined
  const { zone, name, network_id: networkId, ipv4_cidr: ipv4Cidr, ipv6_prefix: ipv6Prefix } = row
  const shared = await findSharedAddress(db, { ...holdingOf(id), networkId })
  if (shared === undefined) throw new Error('a load balancer has no address in its network')
  const addresses = await listAddresses(db, holdingOf(id))
  const current = (use: PoolUse) => addresses.find((address) => address.use === use && address.isCurrent)
  const [publicIpv4, publicIpv6] = [current('server_ipv4'), current('server_ipv6_prefix')]
  return { zone, name, networkId, ipv4Cidr, ipv6Prefix, shared, publicIpv4, publicIpv6 }
}

/** Idempotent. Its certificates are deleted with it. */
export async function releaseLoadBalancer(tx: Transaction<Tables>, id: LoadBalancerId): Promise<void> {
  await releaseQuotas(tx, holdingOf(id))
  await forgetUse(tx, holdingOf(id))
  await releaseSharedAddresses(tx, holdingOf(id))
  await deleteWhere(tx, 'load_balancer', { account_id: id.accountId, id: id.loadBalancerId }).execute()
  await releaseAddresses(tx, holdingOf(id))
}

export interface SealedCertificate {
  readonly id: string
  /** The chain as PEM. */
  readonly certificate: string
  readonly sealedKey: string
}

/** The owner that the key is sealed for. */
export const certificateOwner = ({ accountId, loadBalancerId }: LoadBalancerId, certificateId: string): string =>
  `load_balancer_certificate/${accountId}/${loadBalancerId}/${certificateId}`

/** Does nothing for an existing one. */
export async function keepCertificate(
  tx: Transaction<Tables>,
  { accountId, loadBalancerId }: LoadBalancerId,
  { id, certificate, sealedKey }: SealedCertificate,
  now: Date,
): Promise<void> {
  await tx
    .insertInto('load_balancer_certificate')
    .values({
      account_id: accountId,
      load_balancer_id: loadBalancerId,
      id,
      certificate,
      sealed_key: sealedKey,
      created_at: now,
    })
    .onConflict((clash) => clash.doNothing())
    .execute()
}

/** Those of the ids that exist. */
export async function listCertificates(
  db: Queries,
  { accountId, loadBalancerId }: LoadBalancerId,
  ids: readonly string[],
): Promise<readonly SealedCertificate[]> {
  if (ids.length === 0) return []
  const rows = await selectWhere(db, 'load_balancer_certificate', {
    account_id: accountId,
    load_balancer_id: loadBalancerId,
  })
    .select(['id', 'certificate', 'sealed_key'])
    .where('id', 'in', ids)
    .execute()
  return rows.map(({ id, certificate, sealed_key: sealedKey }) => ({ id, certificate, sealedKey }))
}

/** A change that was not made may have left one; after so long it is not needed. */
const UNUSED_SECONDS = 3_600

/** Ids of certificates that are not among those to keep, and are old enough that no change under way adds them. */
export async function listUnusedCertificates(
  db: Queries,
  { accountId, loadBalancerId }: LoadBalancerId,
  idsInUse: readonly string[],
  now: Date,
): Promise<readonly string[]> {
  const rows = await selectWhere(db, 'load_balancer_certificate', {
    account_id: accountId,
    load_balancer_id: loadBalancerId,
  })
    .select('id')
    .where('created_at', '<', new Date(now.getTime() - UNUSED_SECONDS * 1_000))
    .execute()
  return rows.map(({ id }) => id).filter((id) => !idsInUse.includes(id))
}

/** Idempotent. */
export async function dropCertificates(
  db: Queries,
  { accountId, loadBalancerId }: LoadBalancerId,
  ids: readonly string[],
): Promise<void> {
  if (ids.length === 0) return
  await deleteWhere(db, 'load_balancer_certificate', { account_id: accountId, load_balancer_id: loadBalancerId })
    .where('id', 'in', ids)
    .execute()
}
