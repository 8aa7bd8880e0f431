/** Floating IPs: their addresses, and the servers that they are assigned to. Locks are taken in one order: the server's
 *  placement, the floating IP, the router, and the pool last. */
import type { Selectable, Transaction } from 'kysely'
import { type FloatingTarget, parseTarget } from '../../domain/floating-ip/rules.ts'
import { badField, conflict, notFound } from '../../domain/problem.ts'
import { releaseQuotas, takeQuotas } from '../account/index.ts'
import { forgetUse } from '../claim/index.ts'
import { listInterfaces } from '../network-interface/index.ts'
import type { Queries } from '../kit/open.ts'
import { lockPlacement } from '../placement/index.ts'
import { listAddresses, releaseAddresses, takeAddress } from '../public-pool/index.ts'
import { findRouterOf, lockNatRouter } from '../router/index.ts'
import { serverHolder } from '../server/index.ts'
import type { Tables } from '../tables.ts'
import { deleteWhere, selectWhere, updateWhere } from '../kit/where.ts'

export interface FloatingIpId {
  readonly accountId: string
  readonly floatingIpId: string
}

/** Its desired target. */
export interface Assignment {
  readonly serverId: string
  /** `public`, or `private:<network>`. */
  readonly target: string
}

export interface FloatingIpDemand extends FloatingIpId {
  readonly zone: string
  readonly assignment?: Assignment | undefined
}

export interface FloatingIpClaim {
  readonly zone: string
  readonly address: string
  readonly serverId: string | undefined
  /** Undefined for the public address of the server. */
  readonly networkId: string | undefined
}

const holdingOf = ({ accountId, floatingIpId }: FloatingIpId) => ({
  accountId,
  holder: `floating_ip/${floatingIpId}` as const,
})

/** Allocates an address, once; the target is checked first. Throws what `assignFloatingIp` does, and the Problems
 *  `quota_exceeded` (422) and `no_free_address` (503). */
export async function claimFloatingIp(tx: Transaction<Tables>, demand: FloatingIpDemand): Promise<FloatingIpClaim> {
  const { accountId, floatingIpId: id, zone, assignment } = demand
  const known = await findFloatingIp(tx, demand)
  if (known !== undefined) return known
  const target = assignment && (await lockTarget(tx, { accountId, zone, ...assignment }))
  await takeQuotas(tx, { ...holdingOf(demand), amounts: { floating_ips: 1 } })
  await tx
    .insertInto('floating_ip')
    .values({ account_id: accountId, id, zone, ...columnsOf(assignment?.serverId, target) })
    .execute()
  await takeAddress(tx, { ...holdingOf(demand), zone, use: 'floating_ipv4' })
  const claim = await findFloatingIp(tx, demand)
  if (claim === undefined) throw new Error('a floating IP that was just claimed is not there')
  return claim
}

const columnsOf = (serverId: string | undefined, target: FloatingTarget | undefined) => ({
  server_id: serverId ?? null,
  network_id: target?.kind === 'private' ? target.networkId : null,
})

/** From now on it points only there; without an assignment, nowhere. Does nothing when it does so already. Throws 404
 *  for a server that is not the account's, and 400 for an invalid target. */
export async function assignFloatingIp(
  tx: Transaction<Tables>,
  { accountId, floatingIpId, assignment }: FloatingIpId & { readonly assignment: Assignment | undefined },
): Promise<void> {
  const known = await findFloatingIp(tx, { accountId, floatingIpId })
  if (known === undefined) throw notFound('floating IP')
  const target = assignment && (await lockTarget(tx, { accountId, zone: known.zone, ...assignment }))
  await updateWhere(tx, 'floating_ip', { account_id: accountId, id: floatingIpId })
    .set(columnsOf(assignment?.serverId, target))
    .execute()
}

async function lockTarget(
  tx: Transaction<Tables>,
  { accountId, zone, serverId, target: text }: Assignment & { readonly accountId: string; readonly zone: string },
): Promise<FloatingTarget> {
  const placement = await lockPlacement(tx, { accountId, serverId })
  if (placement === undefined) throw notFound('server')
  if (placement.zone !== zone)
    throw badField('serverId', `the server is in zone ${placement.zone}, the floating IP in zone ${zone}`)
  const moving = await selectWhere(tx, 'placement_target', { account_id: accountId, server_id: serverId })
    .select('zone')
    .executeTakeFirst()
  if (moving !== undefined && moving.zone !== zone)
    throw conflict('state_not_allowed', 'The server is on its way to another zone.', {
      resource: { type: 'server', id: serverId },
    })
  const target = parseTarget(text)
  if (target.kind === 'public') {
    if ((await publicAddressOf(tx, { accountId, serverId })) === undefined)
      throw badField('target', 'the server has no public IPv4 address')
    return target
  }
  const { networkId } = target
  const interfaces = await listInterfaces(tx, { accountId, serverId })
  if (!interfaces.some((each) => each.networkId === networkId && !each.isLeaving))
    throw badField('target', `the server is not in the network ${networkId}`)
  if ((await lockNatRouter(tx, { accountId, networkId })) === undefined)
    throw badField('target', `the network ${networkId} is at no router with NAT`)
  return target
}

const publicAddressOf = async (
  db: Queries,
  { accountId, serverId }: { readonly accountId: string; readonly serverId: string },
): Promise<string | undefined> =>
  (await listAddresses(db, { accountId, holder: serverHolder(serverId) })).find(
    ({ use, isCurrent }) => use === 'server_ipv4' && isCurrent,
  )?.address

/** Undefined when nothing is claimed. */
export async function findFloatingIp(db: Queries, id: FloatingIpId): Promise<FloatingIpClaim | undefined> {
  const row = await rowOf(db, id)
  const [held] = row === undefined ? [] : await listAddresses(db, holdingOf(id))
  return row === undefined || held === undefined
    ? undefined
    : {
        zone: row.zone,
        address: held.address,
        serverId: row.server_id ?? undefined,
        networkId: row.network_id ?? undefined,
      }
}

const rowOf = (
  db: Queries,
  { accountId, floatingIpId }: FloatingIpId,
): Promise<Selectable<Tables['floating_ip']> | undefined> =>
  selectWhere(db, 'floating_ip', { account_id: accountId, id: floatingIpId }).selectAll().executeTakeFirst()

/** Where packets to it are sent: the public address of its server, or an interface behind a router. Undefined when it
 *  points nowhere now. */
export async function findForwarding(
  db: Queries,
  { accountId, claim }: { readonly accountId: string; readonly claim: FloatingIpClaim },
): Promise<
  | { readonly kind: 'public'; readonly serverAddress: string }
  | { readonly kind: 'private'; readonly routerId: string; readonly routerAddress: string; readonly address: string }
  | undefined
> {
  const { serverId, networkId } = claim
  if (serverId === undefined) return undefined
  if (networkId === undefined) {
    const serverAddress = await publicAddressOf(db, { accountId, serverId })
    return serverAddress === undefined ? undefined : { kind: 'public', serverAddress }
  }
  const own = (await listInterfaces(db, { accountId, serverId })).find((each) => each.networkId === networkId)
  const router = await findRouterOf(db, { accountId, networkId })
  return own === undefined || router?.publicAddress === undefined
    ? undefined
    : {
        kind: 'private',
        routerId: router.routerId,
        routerAddress: router.publicAddress.address,
        address: own.ipv4Address,
      }
}

/** Releases the address, regardless of its assignment. Idempotent. */
export async function releaseFloatingIp(tx: Transaction<Tables>, id: FloatingIpId): Promise<void> {
  await releaseQuotas(tx, holdingOf(id))
  await forgetUse(tx, holdingOf(id))
  await deleteWhere(tx, 'floating_ip', { account_id: id.accountId, id: id.floatingIpId }).execute()
  await releaseAddresses(tx, holdingOf(id))
}
