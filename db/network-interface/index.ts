/** Interfaces of servers in private networks: slots and addresses. A row is an interface; its MAC address is a claim
 *  like those of servers. Locks are taken in one order: the server's placement, then networks. */
import type { Expression, Selectable, Transaction } from 'kysely'
import { canonicalAddress } from '../../domain/network/addresses.ts'
import {
  interfaceAddressFault,
  type ChosenAddresses,
  freeAddresses,
  INTERFACES_PER_SERVER_MAXIMUM,
} from '../../domain/network/interfaces.ts'
import { badField, conflict, notFound, quotaExceeded, unavailable } from '../../domain/problem.ts'
import { UNMADE } from '../../domain/server/rules.ts'
import { newUuid, type Random } from '../../kit/sys/random.ts'
import { claimMacAddress, listInUse, releaseClaims } from '../claim/index.ts'
import { requireLook } from '../look/index.ts'
import { lockNetwork, type NetworkId } from '../network/index.ts'
import { lockPlacement } from '../placement/index.ts'
import type { Queries } from '../kit/open.ts'
import type { Tables } from '../tables.ts'
import { deleteWhere, selectWhere, updateWhere } from '../kit/where.ts'

interface ServersKey {
  readonly accountId: string
  /** At least one. */
  readonly serverIds: readonly string[]
}

interface ServerKey {
  readonly accountId: string
  readonly serverId: string
}

/** A network that a server must be attached to, with the addresses that were chosen for it. */
export interface InterfaceDemand extends ChosenAddresses {
  readonly networkId: string
  /** Of the Network. */
  readonly networkUid: string
}

export interface ClaimedInterface {
  readonly id: string
  readonly networkId: string
  readonly networkUid: string
  /** Of the guest, from 1. */
  readonly slot: number
  readonly macAddress: string
  readonly ipv4Address: string
  readonly ipv6Address: string
  /** Of its network. */
  readonly ipv4Cidr: string
  readonly ipv6Prefix: string
  /** It is being detached. */
  readonly isLeaving: boolean
  /** RFC 3339. */
  readonly createdAt: string
}

export interface By {
  readonly now: Date
  readonly random: Random
}

const holderOf = (id: string): string => `interface/${id}`

/** Attaches a server that has room to a network, once: an existing interface there stays as it is. Throws 404 for an
 *  unknown network, 400 for one of another zone and for addresses that its hosts cannot have, the Problems `in_use`
 *  (409) for an address that is taken, `state_not_allowed` (409) for a server that is on its way to another zone,
 *  `quota_exceeded` (422) for one interface too many, and `no_free_address` (503) for a network that is full. */
export async function attachInterface(
  tx: Transaction<Tables>,
  { accountId, serverId, ...demand }: ServerKey & InterfaceDemand,
  by: By,
): Promise<ClaimedInterface> {
  const server = { accountId, serverId }
  const zone = await lockServerZone(tx, server)
  return addInterface(tx, { ...server, zone, ...demand }, by)
}

/** The same, for a network that the server is not attached to: throws the Problem `in_use` (409) for another. */
export async function attachNewInterface(
  tx: Transaction<Tables>,
  demand: ServerKey & InterfaceDemand,
  by: By,
): Promise<ClaimedInterface> {
  await lockServerZone(tx, demand)
  const { networkId } = demand
  if ((await listInterfaces(tx, demand)).some((each) => each.networkId === networkId && !each.isLeaving))
    throw conflict('in_use', 'The server is in the network already.', { resource: { type: 'network', id: networkId } })
  return attachInterface(tx, demand, by)
}

/** The same for a server that was placed by this transaction. */
export async function addInterface(
  tx: Transaction<Tables>,
  {
    accountId,
    serverId,
    zone,
    networkId,
    networkUid,
    ...chosen
  }: ServerKey & InterfaceDemand & { readonly zone: string },
  { now, random }: By,
): Promise<ClaimedInterface> {
  const server = { accountId, serverId }
  const network = await lockNetwork(tx, { accountId, networkId })
  if (network.zone !== zone)
    throw badField('networkId', `the network is in zone ${network.zone}, the server in zone ${zone}`)
  const own = await listInterfaces(tx, server)
  const known = own.find((each) => each.networkId === networkId)
  if (known?.isLeaving === true)
    throw conflict('state_not_allowed', 'The server is leaving the network. Try again when it has left.', {
      resource: { type: 'network', id: networkId },
    })
  if (known !== undefined) return known
  if (own.length + 1 >= INTERFACES_PER_SERVER_MAXIMUM)
    throw quotaExceeded({
      name: 'interfaces',
      limit: INTERFACES_PER_SERVER_MAXIMUM,
      used: own.length + 1,
      requested: 1,
    })
  const addresses = await chooseAddresses(tx, { accountId, networkId }, network, canonical(chosen))
  const id = newUuid(random)
  const macAddress = await claimMacAddress(tx, { accountId, holder: holderOf(id) }, { now, random })
  const slot = freeSlot(own)
  await tx
    .insertInto('network_interface')
    .values({
      id,
      account_id: accountId,
      server_id: serverId,
      network_id: networkId,
      network_uid: networkUid,
      slot,
      mac_address: macAddress,
      ipv4_address: addresses.ipv4Address,
      ipv6_address: addresses.ipv6Address,
      created_at: now,
    })
    .execute()
  return {
    id,
    networkId,
    networkUid,
    slot,
    macAddress,
    ...addresses,
    ipv4Cidr: network.ipv4Cidr,
    ipv6Prefix: network.ipv6Prefix,
    isLeaving: false,
    createdAt: now.toISOString(),
  }
}

/** Throws `state_not_allowed` (409) for a server without room, or on its way to another zone. */
async function lockServerZone(tx: Transaction<Tables>, server: ServerKey): Promise<string> {
  const resource = { type: 'server', id: server.serverId }
  const placement = await lockPlacement(tx, server)
  if (placement === undefined) throw conflict('state_not_allowed', UNMADE, { resource })
  const target = await selectWhere(tx, 'placement_target', { account_id: server.accountId, server_id: server.serverId })
    .select('zone')
    .executeTakeFirst()
  if (target !== undefined && target.zone !== placement.zone)
    throw conflict('state_not_allowed', 'The server is on its way to another zone.', { resource })
  return placement.zone
}

const canonical = ({ ipv4Address, ipv6Address }: ChosenAddresses): ChosenAddresses => ({
  ipv4Address: ipv4Address && canonicalAddress(ipv4Address),
  ipv6Address: ipv6Address && canonicalAddress(ipv6Address),
})

/** Free addresses, including the chosen ones. The network is locked. Throws as `attachInterface` does. */
export async function chooseAddresses(
  tx: Transaction<Tables>,
  { accountId, networkId }: NetworkId,
  range: { readonly ipv4Cidr: string; readonly ipv6Prefix: string },
  chosen: ChosenAddresses,
): Promise<{ readonly ipv4Address: string; readonly ipv6Address: string }> {
  const fault = interfaceAddressFault(range, chosen)
  if (fault !== undefined) throw badField(fault.field, fault.detail)
  await requireLook(tx)
  const rows = await selectWhere(tx, 'network_interface', { account_id: accountId, network_id: networkId })
    .select(['server_id', 'ipv4_address', 'ipv6_address'])
    .execute()
  const holder = rows.find((row) => row.ipv4_address === chosen.ipv4Address || row.ipv6_address === chosen.ipv6Address)
  if (holder !== undefined)
    throw conflict('in_use', 'Another server of the network has the address.', {
      resource: { type: 'server', id: holder.server_id },
    })
  const shared = await selectWhere(tx, 'shared_address', { account_id: accountId, network_id: networkId })
    .select(['ipv4_address', 'ipv6_address'])
    .execute()
  if (shared.some((row) => row.ipv4_address === chosen.ipv4Address || row.ipv6_address === chosen.ipv6Address))
    throw conflict('in_use', 'A load balancer or an edge of the network has the address.', {
      resource: { type: 'network', id: networkId },
    })
  const inUse = await listInUse(tx, 'network', networkId)
  if ([chosen.ipv4Address, chosen.ipv6Address].some((one) => one !== undefined && inUse.includes(one)))
    throw conflict('in_use', 'A server of the network uses the address, though nothing is noted of it.', {
      resource: { type: 'network', id: networkId },
    })
  const free = freeAddresses(
    range,
    [...[...rows, ...shared].flatMap((row) => [row.ipv4_address, row.ipv6_address]), ...inUse],
    chosen,
  )
  if (free === undefined)
    throw unavailable('no_free_address', 'Every address of the network is taken.', {
      resource: { type: 'network', id: networkId },
    })
  return free
}

function freeSlot(own: readonly ClaimedInterface[]): number {
  for (let slot = 1; slot < INTERFACES_PER_SERVER_MAXIMUM; slot++)
    if (!own.some((each) => each.slot === slot)) return slot
  throw new Error('a server with fewer interfaces than slots has a free one')
}

/** Starts to detach the server from a network: its addresses are kept until `releaseInterface`. Does nothing when it is
 *  not attached. Throws the Problem `in_use` (409) while a floating IP points there. */
export async function leaveNetwork(
  tx: Transaction<Tables>,
  { accountId, serverId, networkId }: ServerKey & NetworkId,
): Promise<void> {
  await lockPlacement(tx, { accountId, serverId })
  await requireUntargeted(tx, { accountId, serverId, networkId })
  await updateWhere(tx, 'network_interface', { account_id: accountId, server_id: serverId, network_id: networkId })
    .set({ is_leaving: true })
    .execute()
}

/** Throws the Problem `in_use` (409) while a floating IP points to the interface. */
export async function requireUntargeted(
  db: Queries,
  { accountId, serverId, networkId }: ServerKey & NetworkId,
): Promise<void> {
  const floating = await selectWhere(db, 'floating_ip', {
    account_id: accountId,
    server_id: serverId,
    network_id: networkId,
  })
    .select('id')
    .orderBy('id')
    .executeTakeFirst()
  if (floating !== undefined)
    throw conflict('in_use', 'A floating IP is assigned to the interface. Unassign it first.', {
      resource: { type: 'floating_ip', id: floating.id },
    })
}

/** The floating IPs that point to each server, by network; undefined for its public address. */
export async function listFloatingTargets(
  db: Queries,
  { accountId, serverIds }: ServersKey,
): Promise<ReadonlyMap<string, ReadonlyMap<string | undefined, readonly string[]>>> {
  const rows = await selectWhere(db, 'floating_ip', { account_id: accountId })
    .where('server_id', 'in', serverIds)
    .select(['id', 'network_id', 'server_id'])
    .orderBy('id')
    .execute()
  const servers = Map.groupBy(rows, ({ server_id: id }) => id ?? '')
  return new Map(
    [...servers].map(([id, own]) => [
      id,
      new Map(
        [...Map.groupBy(own, ({ network_id: network }) => network ?? undefined)].map(([network, targets]) => [
          network,
          targets.map((target) => target.id),
        ]),
      ),
    ]),
  )
}

/** Releases the interface that a change has claimed and did not write. Meanwhile the server's spec may attach it to the
 *  network: `isDesired` says so. Idempotent. */
export async function withdrawInterface(
  tx: Transaction<Tables>,
  { networkId, ...server }: ServerKey & NetworkId,
  isDesired: boolean,
): Promise<void> {
  await lockPlacement(tx, server)
  if (isDesired) return
  const found = (await listInterfaces(tx, server)).find((each) => each.networkId === networkId)
  if (found !== undefined) await releaseInterface(tx, { accountId: server.accountId, id: found.id })
}

/** Releases the addresses of an interface. Idempotent. */
export async function releaseInterface(
  tx: Transaction<Tables>,
  { accountId, id }: { readonly accountId: string; readonly id: string },
): Promise<void> {
  await deleteWhere(tx, 'network_interface', { account_id: accountId, id }).execute()
  await releaseClaims(tx, { accountId, holder: holderOf(id) })
}

/** Releases those of a server that is being deleted. Idempotent. */
export async function releaseInterfaces(tx: Transaction<Tables>, server: ServerKey): Promise<void> {
  for (const { id } of await listInterfaces(tx, server)) await releaseInterface(tx, { accountId: server.accountId, id })
}

/** Unassigns the floating IPs of a server that is being deleted. Idempotent. */
export async function unassignFrom(db: Queries, { accountId, serverId }: ServerKey): Promise<void> {
  await updateWhere(db, 'floating_ip', { account_id: accountId, server_id: serverId })
    .set({ server_id: null, network_id: null })
    .execute()
}

/** Throws the Problem `in_use` (409), which names a network or a floating IP, for a server that has interfaces or
 *  floating IPs: those stay in their zone. */
export async function requireNoInterfaces(db: Queries, server: ServerKey): Promise<void> {
  const [first] = await listInterfaces(db, server)
  if (first !== undefined)
    throw conflict('in_use', 'The server is in a private network, which stays in its zone. Detach it first.', {
      resource: { type: 'network', id: first.networkId },
    })
  const { accountId, serverId } = server
  const targets = await listFloatingTargets(db, { accountId, serverIds: [serverId] })
  const [floating] = [...(targets.get(serverId)?.values() ?? [])].flat()
  if (floating !== undefined)
    throw conflict('in_use', 'A floating IP is assigned to the server, which stays in its zone. Unassign it first.', {
      resource: { type: 'floating_ip', id: floating },
    })
}

/** By slot. */
export const listInterfaces = async (db: Queries, server: ServerKey): Promise<readonly ClaimedInterface[]> =>
  (await claimedInterfaces(db, server).execute()).map(toClaimedInterface)

/** By server; each by slot. */
export async function listInterfacesOf(
  db: Queries,
  { accountId, serverIds }: ServersKey,
): Promise<ReadonlyMap<string, readonly ClaimedInterface[]>> {
  const rows = await interfacesOfAccount(db, accountId)
    .where('network_interface.server_id', 'in', serverIds)
    .select('network_interface.server_id')
    .execute()
  return new Map(
    [...Map.groupBy(rows, ({ server_id: id }) => id)].map(([id, own]) => [id, own.map(toClaimedInterface)]),
  )
}

/** The query of `listInterfaces`, also as part of another query whose columns name the server. */
export const claimedInterfaces = (
  db: Queries,
  { accountId, serverId }: { readonly [Name in keyof ServerKey]: string | Expression<string> },
) => interfacesOfAccount(db, accountId).where('network_interface.server_id', '=', serverId)

const interfacesOfAccount = (db: Queries, accountId: string | Expression<string>) =>
  db
    .selectFrom('network_interface')
    .innerJoin('network', (join) =>
      join
        .onRef('network.account_id', '=', 'network_interface.account_id')
        .onRef('network.id', '=', 'network_interface.network_id'),
    )
    .select(INTERFACE_COLUMNS)
    .where('network_interface.account_id', '=', accountId)
    .orderBy('network_interface.slot')

const INTERFACE_COLUMNS = [
  'network_interface.id',
  'network_interface.network_id',
  'network_interface.network_uid',
  'network_interface.slot',
  'network_interface.mac_address',
  'network_interface.ipv4_address',
  'network_interface.ipv6_address',
  'network_interface.is_leaving',
  'network_interface.created_at',
  'network.ipv4_cidr',
  'network.ipv6_prefix',
] as const
export type InterfaceRow = Omit<Selectable<Tables['network_interface']>, 'account_id' | 'server_id' | 'created_at'> &
  Pick<Selectable<Tables['network']>, 'ipv4_cidr' | 'ipv6_prefix'> & { readonly created_at: Date | string }

/** From a row that has `INTERFACE_COLUMNS`, also as JSON. */
export const toClaimedInterface = (row: InterfaceRow): ClaimedInterface => ({
  id: row.id,
  networkId: row.network_id,
  networkUid: row.network_uid,
  slot: row.slot,
  macAddress: row.mac_address,
  ipv4Address: row.ipv4_address,
  ipv6Address: row.ipv6_address,
  ipv4Cidr: row.ipv4_cidr,
  ipv6Prefix: row.ipv6_prefix,
  isLeaving: row.is_leaving,
  createdAt: new Date(row.created_at).toISOString(),
})

/** Throws 404 unless the server has the interface. */
export async function findInterface(db: Queries, server: ServerKey, id: string): Promise<ClaimedInterface> {
  const found = (await listInterfaces(db, server)).find((each) => each.id === id)
  if (found === undefined) throw notFound('interface of the server')
  return found
}
