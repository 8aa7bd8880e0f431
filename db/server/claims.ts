/** Everything that a server holds in PostgreSQL: quota, hostname, MAC address, room on a node, public addresses. Taken
 *  in one transaction and
 *  given back in one. The API server takes it before the server exists; the controller does for servers made with
 *  kubectl. */
import { type Selectable, sql, type Transaction } from 'kysely'
import { jsonArrayFrom } from 'kysely/helpers/postgres'
import { conflict } from '../../domain/problem.ts'
import { PREFIXES_OF_SERVER_MAXIMUM } from '../../domain/public-pool.ts'
import { serverQuota, storageQuota } from '../../domain/quota.ts'
import { isUuid } from '../../domain/uuid.ts'
import type { Random } from '../../kit/sys/random.ts'
import { claimNames, releaseClaims } from '../claim/index.ts'
import { openGroupRead } from '../group-read.ts'
import { claimFirstPlacements, listPlaced, type Placement, releasePlacement } from '../placement/index.ts'
import {
  claimFirstAddresses,
  type HeldAddress,
  heldAddresses,
  type HeldRow,
  listAddresses,
  releaseAddresses,
  takeAddress,
  toHeldAddress,
} from '../public-pool/index.ts'
import { releaseQuotas, takeQuotas } from '../account/index.ts'
import { arrivingServerHolder, serverHolder, storageHolder } from './holders.ts'
import { SIZE_CHANGE_COLUMNS, type SizeChange, type SizeColumns, toSizeChange } from './size-changes.ts'
import type { Queries } from '../open.ts'
import type { Tables } from '../tables.ts'
import type { MoveTarget } from './moves.ts'

export interface ServerId {
  readonly accountId: string
  readonly serverId: string
}

export interface ServerDemand extends ServerId {
  readonly hostname: string
  readonly zone: string
  /** Of the zone. */
  readonly region?: string | undefined
  readonly serverGroupId?: string | undefined
  readonly cpuPool?: string | undefined
  readonly cores: number
  readonly memoryMebibytes: number
  /** Of the boot storage. */
  readonly storageGibibytes: number
  /** Whether it shall have a public IPv4 address. */
  readonly publicIpv4?: boolean | undefined
}

export interface ServerClaims {
  readonly placement: Placement
  readonly macAddress: string
  /** Of each use the current one first. */
  readonly addresses: readonly HeldAddress[]
  /** Where the server is on its way to. */
  readonly target?: MoveTarget
  /** Its size is being changed. */
  readonly sizeChange?: SizeChange
}

/** Claims everything, once: what the server has already stays as it is.
 *  Throws the Problems `quota_exceeded` (422), `name_taken` (409), `no_capacity`, `no_distinct_failure_domain` and
 *  `no_free_address` (503), and 400 for a group
 *  that is not there; the transaction must then be rolled back. */
export async function claimServer(
  tx: Transaction<Tables>,
  demand: ServerDemand,
  { now, random }: { readonly now: Date; readonly random: Random },
): Promise<ServerClaims> {
  const [claims] = await claimServers(tx, [demand], { now, random })
  if (claims === undefined) throw new Error('a server was left out')
  return claims
}

/** As `claimServer`, for servers of one likeness, by the same statements. What all of them cannot have together, fewer
 *  of them may. */
export async function claimServers(
  tx: Transaction<Tables>,
  demands: readonly ServerDemand[],
  by: { readonly now: Date; readonly random: Random },
): Promise<readonly ServerClaims[]> {
  const [first] = demands
  if (first === undefined) return []
  const { accountId } = first
  await takeQuotas(
    tx,
    ...demands.flatMap((demand) => [
      { accountId, holder: serverHolder(demand.serverId), amounts: serverQuota(demand) },
      { accountId, holder: storageHolder(demand.serverId), amounts: storageQuota(demand.storageGibibytes) },
    ]),
  )
  // Whoever holds room holds everything.
  const claims = new Map<string, ServerClaims | undefined>()
  const placed = (
    await listPlaced(
      tx,
      accountId,
      demands.map(({ serverId }) => serverId),
    )
  ).map((serverId) => ({ accountId, serverId }))
  const held = placed.length === 0 ? [] : await findServersClaims(tx, placed)
  for (const [index, { serverId }] of placed.entries()) claims.set(serverId, held[index])
  const fresh = demands
    .filter(({ serverId }) => !claims.has(serverId))
    .map((demand) => ({ ...demand, holder: serverHolder(demand.serverId) }))
  if (fresh.length > 0) {
    const macAddresses = await claimNames(tx, fresh, by)
    const placements = await claimFirstPlacements(tx, fresh, by.now)
    const addresses = await claimFirstAddresses(tx, fresh, first)
    for (const [index, { serverId, holder }] of fresh.entries()) {
      const [placement, macAddress] = [placements[index], macAddresses.get(holder)]
      if (placement !== undefined && macAddress !== undefined)
        claims.set(serverId, { placement, macAddress, addresses: addresses.get(holder) ?? [] })
    }
  }
  return demands.flatMap(({ serverId }) => claims.get(serverId) ?? [])
}

/** The same for servers of one account that differ in id and host name only. A server of a group is like no other: each
 *  keeps from the others. */
export const batchKeyOf = ({ serverId, hostname: _, ...shared }: ServerDemand): string =>
  JSON.stringify(shared.serverGroupId === undefined ? shared : serverId)

/** Gives the server another /64 when the pool of its own is draining; the one before goes on leading to it.
 *  Throws the Problems `no_free_address` (503) and `state_not_allowed` (409) for one that has as many as it may. */
export async function renumberServer(
  tx: Transaction<Tables>,
  { accountId, serverId, zone }: ServerId & { readonly zone: string },
): Promise<void> {
  const holding = { accountId, holder: serverHolder(serverId) }
  const prefixes = (await listAddresses(tx, holding)).filter(({ use }) => use === 'server_ipv6_prefix')
  if (!prefixes.some(({ isCurrent, isDraining }) => isCurrent && isDraining)) return
  if (prefixes.length >= PREFIXES_OF_SERVER_MAXIMUM)
    throw conflict(
      'state_not_allowed',
      `The server has ${prefixes.length} IPv6 prefixes that lead to it. It can have another one when a network ` +
        'of the earlier ones has been retired.',
    )
  await takeAddress(tx, { ...holding, zone, use: 'server_ipv6_prefix' })
}

/** Gives everything back; nothing when that was done before. */
export async function releaseServer(tx: Transaction<Tables>, { accountId, serverId }: ServerId): Promise<void> {
  const holding = { accountId, holder: serverHolder(serverId) }
  const arriving = { accountId, holder: arrivingServerHolder(serverId) }
  await releaseQuotas(tx, holding)
  await releaseQuotas(tx, { accountId, holder: storageHolder(serverId) })
  for (const each of [holding, arriving]) await releaseClaims(tx, each)
  await releasePlacement(tx, { accountId, serverId })
  for (const each of [holding, arriving]) await releaseAddresses(tx, each)
}

/** Undefined unless the server holds everything. */
export async function findServerClaims(db: Queries, server: ServerId): Promise<ServerClaims | undefined> {
  const [claims] = await findServersClaims(db, [server])
  return claims
}

/** As `findServerClaims`, for each of the servers, by one statement. */
export async function findServersClaims(
  db: Queries,
  servers: readonly ServerId[],
): Promise<readonly (ServerClaims | undefined)[]> {
  const accounts = servers.map(({ accountId }) => accountId)
  const ids = servers.map(({ serverId }) => serverId)
  const wanted = sql<{
    account_id: string
    server_id: string
    position: number
  }>`unnest(${accounts}::uuid[], ${ids}::text[]) with ordinality`
  const rows = await db
    .selectFrom(wanted.as<'wanted'>(sql`wanted(account_id, server_id, position)`))
    .innerJoin('placement', (join) =>
      join
        .onRef('placement.account_id', '=', 'wanted.account_id')
        .onRef('placement.server_id', '=', 'wanted.server_id'),
    )
    .innerJoin('address_claim', (join) =>
      join
        .onRef('address_claim.account_id', '=', 'placement.account_id')
        .on('address_claim.holder', '=', holderOfPlacement)
        .on('address_claim.kind', '=', 'mac'),
    )
    .leftJoin('placement_target as target', (join) =>
      join
        .onRef('target.account_id', '=', 'placement.account_id')
        .onRef('target.server_id', '=', 'placement.server_id'),
    )
    .leftJoin('size_change', (join) =>
      join
        .onRef('size_change.account_id', '=', 'placement.account_id')
        .onRef('size_change.server_id', '=', 'placement.server_id'),
    )
    .select(SIZE_CHANGE_COLUMNS)
    .select(['target.operation_id as target_operation', 'target.zone as target_zone', 'target.node as target_node'])
    .select([
      'wanted.position',
      'placement.account_id',
      'placement.server_id',
      'placement.zone',
      'placement.node',
      'placement.cores',
      'placement.memory_mebibytes',
      'placement.storage_gibibytes',
      'address_claim.value',
    ])
    .select((row) =>
      jsonArrayFrom(heldAddresses(db, { accountId: row.ref('placement.account_id'), holder: holderOfPlacement })).as(
        'addresses',
      ),
    )
    .execute()
  const claims = new Map(rows.map((row) => [row.position, toServerClaims(row)]))
  return servers.map((_, index) => claims.get(index + 1))
}

export type ClaimsReading = (server: ServerId) => Promise<ServerClaims | undefined>

/** `findServerClaims` for many who ask at the same time. */
export const openClaimsReading = (db: Queries): ClaimsReading =>
  openGroupRead((servers: readonly ServerId[]) => findServersClaims(db, servers))

const holderOfPlacement = sql<string>`${sql.lit(serverHolder(''))} || placement.server_id`

type ClaimsRow = SizeColumns &
  Pick<
    Selectable<Tables['placement']>,
    'account_id' | 'server_id' | 'zone' | 'node' | 'cores' | 'memory_mebibytes' | 'storage_gibibytes'
  > & {
    readonly value: string
    readonly target_operation: string | null
    readonly target_zone: string | null
    readonly target_node: string | null
    readonly addresses: readonly HeldRow[]
  }

function toServerClaims(row: ClaimsRow): ServerClaims {
  const sizeChange = toSizeChange(row)
  return {
    ...(sizeChange === undefined ? {} : { sizeChange }),
    macAddress: row.value,
    addresses: row.addresses.map(toHeldAddress),
    ...(row.target_operation === null || row.target_zone === null || row.target_node === null
      ? {}
      : { target: { operationId: row.target_operation, zone: row.target_zone, node: row.target_node } }),
    placement: {
      accountId: row.account_id,
      serverId: row.server_id,
      zone: row.zone,
      node: row.node,
      cores: row.cores,
      memoryMebibytes: row.memory_mebibytes,
      storageGibibytes: row.storage_gibibytes,
    },
  }
}

/** Servers that have claimed their room before the given time. */
export async function listServersWithClaims(db: Queries, claimedBefore: Date): Promise<readonly ServerId[]> {
  const rows = await db
    .selectFrom('placement')
    .select(['account_id', 'server_id'])
    .where('claimed_at', '<', claimedBefore)
    .execute()
  return rows.map((row) => ({ accountId: row.account_id, serverId: row.server_id }))
}

/** Whether there is such an account, for ids that come from names of namespaces and may be anything. */
export async function accountExists(db: Queries, accountId: string): Promise<boolean> {
  return (
    isUuid(accountId) &&
    (await db.selectFrom('account').select('id').where('id', '=', accountId).executeTakeFirst()) !== undefined
  )
}
