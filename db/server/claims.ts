/** Everything that a server holds in PostgreSQL: quota, hostname, MAC address, room on a node, public addresses.
 *  Claimed in one transaction and released in one, by the API server before the server exists, by the controller for
 *  servers created with kubectl. */
import { type Selectable, sql, type Transaction } from 'kysely'
import { jsonArrayFrom } from 'kysely/helpers/postgres'
import { defined } from '../../domain/defined.ts'
import { conflict } from '../../domain/problem.ts'
import { PREFIXES_OF_SERVER_MAXIMUM } from '../../domain/public-pool/rules.ts'
import { serverQuota, storageQuota } from '../../domain/account/quota.ts'
import { isUuid } from '../../domain/uuid.ts'
import type { Random } from '../../kit/sys/random.ts'
import { claimNames, forgetUse, releaseClaims } from '../claim/index.ts'
import { openGroupRead } from '../kit/group-read.ts'
import {
  claimFirstPlacements,
  listPlaced,
  type Placement,
  releasePlacement,
  lockPlacement,
} from '../placement/index.ts'
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
import {
  addInterface,
  type ClaimedInterface,
  claimedInterfaces,
  type InterfaceDemand,
  type InterfaceRow,
  releaseInterfaces,
  unassignFrom,
  toClaimedInterface,
} from '../network-interface/index.ts'
import { arrivingServerHolder, serverHolder, storageHolder } from './holders.ts'
import { SIZE_CHANGE_COLUMNS, type SizeChange, type SizeColumns, toSizeChange } from './size-changes.ts'
import type { Queries } from '../kit/open.ts'
import type { Tables } from '../tables.ts'
import type { MoveTarget } from './moves.ts'
import { selectWhere } from '../kit/where.ts'

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
  /** The owner that it runs for, where that is not the customer directly: `edge:<id>`. */
  readonly managedBy?: string | undefined
  readonly cpuPool?: string | undefined
  readonly cores: number
  readonly memoryMebibytes: number
  /** Of the boot storage. */
  readonly storageGibibytes: number
  /** Whether it gets a public IPv4 address. */
  readonly publicIpv4?: boolean | undefined
  /** Networks that it is attached to. */
  readonly networks?: readonly InterfaceDemand[] | undefined
}

/** A storage that is attached to a server's guest. */
export interface AttachedDisk {
  readonly storageId: string
  /** uid of the storage. */
  readonly volume: string
  /** Of the guest, from 1. */
  readonly slot: number
}

export interface ServerClaims {
  readonly placement: Placement
  readonly macAddress: string
  /** The current one of each use first. */
  readonly addresses: readonly HeldAddress[]
  /** The target of its move. */
  readonly target?: MoveTarget
  /** Storages attached to it, apart from the boot storage, by slot. */
  readonly disks: readonly AttachedDisk[]
  /** Volumes of disks that are detached by force. */
  readonly forcedVolumes: readonly string[]
  /** Its size is being changed. */
  readonly sizeChange?: SizeChange
  /** In private networks, by slot, including those that are being detached; absent when there are none. */
  readonly interfaces?: readonly ClaimedInterface[]
}

/** Claims everything, once: existing claims of the server stay as they are. Throws the Problems `quota_exceeded` (422),
 *  `name_taken` (409), `no_capacity`, `no_distinct_failure_domain` and `no_free_address` (503), and 400 for a group
 *  that does not exist; the transaction must then be rolled back. */
export async function claimServer(
  tx: Transaction<Tables>,
  demand: ServerDemand,
  { now, random }: { readonly now: Date; readonly random: Random },
): Promise<ServerClaims> {
  const [claims] = await claimServers(tx, [demand], { now, random })
  if (claims === undefined) throw new Error('a server was left out')
  return claims
}

/** As `claimServer`, for servers with the same batch key, by the same statements. When all of them together are
 *  refused, fewer may succeed. */
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
  // A server that holds room holds everything.
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
    for (const [index, { serverId, holder, zone, networks = [] }] of fresh.entries()) {
      const interfaces: ClaimedInterface[] = []
      for (const network of networks)
        interfaces.push(await addInterface(tx, { accountId, serverId, zone, ...network }, by))
      const [placement, macAddress] = [placements[index], macAddresses.get(holder)]
      if (placement !== undefined && macAddress !== undefined)
        claims.set(serverId, {
          placement,
          macAddress,
          addresses: addresses.get(holder) ?? [],
          disks: [],
          forcedVolumes: [],
          ...(interfaces.length === 0 ? {} : { interfaces }),
        })
    }
  }
  return demands.flatMap(({ serverId }) => claims.get(serverId) ?? [])
}

/** The same for servers of one account that differ in id and host name only. A server of a group has a separate key,
 *  because each is kept apart from the others. */
export const batchKeyOf = ({ serverId, hostname: _, ...shared }: ServerDemand): string =>
  JSON.stringify(shared.serverGroupId === undefined && shared.managedBy === undefined ? shared : serverId)

/** Allocates another /64 to the server when the pool of its current one is draining; the previous one stays routed to
 *  it.
 *  Throws the Problems `no_free_address` (503) and `state_not_allowed` (409) for one that has the maximum. */
export async function renumberServer(
  tx: Transaction<Tables>,
  { accountId, serverId, zone }: ServerId & { readonly zone: string },
): Promise<void> {
  const holding = { accountId, holder: serverHolder(serverId) }
  // Of two simultaneous calls, the second sees what the first allocated.
  await lockPlacement(tx, { accountId, serverId })
  const prefixes = (await listAddresses(tx, holding)).filter(({ use }) => use === 'server_ipv6_prefix')
  if (!prefixes.some(({ isCurrent, isDraining }) => isCurrent && isDraining)) return
  if (prefixes.length >= PREFIXES_OF_SERVER_MAXIMUM)
    throw conflict(
      'state_not_allowed',
      `The server has ${prefixes.length} IPv6 prefixes. It can have another one when a network ` +
        'of the earlier ones has been retired.',
    )
  await takeAddress(tx, { ...holding, zone, use: 'server_ipv6_prefix' })
}

/** Releases everything. Idempotent. */
export async function releaseServer(tx: Transaction<Tables>, { accountId, serverId }: ServerId): Promise<void> {
  const holding = { accountId, holder: serverHolder(serverId) }
  const arriving = { accountId, holder: arrivingServerHolder(serverId) }
  await releaseQuotas(tx, holding)
  await releaseQuotas(tx, { accountId, holder: storageHolder(serverId) })
  for (const each of [holding, arriving]) await releaseClaims(tx, each)
  await forgetUse(tx, holding)
  await releaseInterfaces(tx, { accountId, serverId })
  await unassignFrom(tx, { accountId, serverId })
  await releasePlacement(tx, { accountId, serverId })
  for (const each of [holding, arriving]) await releaseAddresses(tx, each)
}

/** Undefined unless the server holds everything. */
export async function findServerClaims(db: Queries, server: ServerId): Promise<ServerClaims | undefined> {
  const [claims] = await findServersClaims(db, [server])
  return claims
}

const PLACEMENT_COLUMNS = [
  'placement.account_id',
  'placement.server_id',
  'placement.zone',
  'placement.node',
  'placement.cores',
  'placement.memory_mebibytes',
  'placement.storage_gibibytes',
] as const

/** A row for each of the servers, with its index among them. */
function rowsOf(servers: readonly ServerId[]) {
  const accounts = servers.map(({ accountId }) => accountId)
  const ids = servers.map(({ serverId }) => serverId)
  const rows = sql<{
    account_id: string
    server_id: string
    position: number
  }>`unnest(${accounts}::uuid[], ${ids}::text[]) with ordinality`
  return rows.as<'wanted'>(sql`wanted(account_id, server_id, position)`)
}

/** As `findServerClaims`, for each of the servers, by one statement. */
export async function findServersClaims(
  db: Queries,
  servers: readonly ServerId[],
): Promise<readonly (ServerClaims | undefined)[]> {
  const rows = await db
    .selectFrom(rowsOf(servers))
    // Limits keep each server's rows from being joined as sets: without statistics, as in the first minute of many
    // creations, PostgreSQL would read every claim of the account for each of the servers.
    .innerJoinLateral(
      (eb) =>
        eb
          .selectFrom('placement')
          .selectAll()
          .whereRef('placement.account_id', '=', 'wanted.account_id')
          .whereRef('placement.server_id', '=', 'wanted.server_id')
          .limit(1)
          .as('placement'),
      (join) => join.onTrue(),
    )
    .innerJoinLateral(
      (eb) =>
        eb
          .selectFrom('address_claim')
          .select('value')
          .whereRef('address_claim.account_id', '=', 'wanted.account_id')
          .where('address_claim.holder', '=', holderOfWanted)
          .where('address_claim.kind', '=', 'mac')
          .limit(1)
          .as('address_claim'),
      (join) => join.onTrue(),
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
    .select(['wanted.position', 'address_claim.value', ...PLACEMENT_COLUMNS])
    .select((row) =>
      jsonArrayFrom(
        row
          .selectFrom('storage_claim')
          .select(['storage_id', 'volume', 'slot', 'phase', 'is_forced'])
          .whereRef('storage_claim.account_id', '=', 'placement.account_id')
          .whereRef('storage_claim.server_id', '=', 'placement.server_id')
          .where('phase', 'in', ['attached', 'leaving'])
          .orderBy('slot'),
      ).as('storages'),
    )
    .select((row) =>
      jsonArrayFrom(
        claimedInterfaces(db, { accountId: row.ref('wanted.account_id'), serverId: row.ref('wanted.server_id') }),
      ).as('interfaces'),
    )
    .select((row) =>
      jsonArrayFrom(heldAddresses(db, { accountId: row.ref('wanted.account_id'), holder: holderOfWanted })).as(
        'addresses',
      ),
    )
    .execute()
  const claims = new Map(rows.map((row) => [row.position, toServerClaims(row)]))
  return servers.map((_, index) => claims.get(index + 1))
}

export type ClaimsReading = (server: ServerId) => Promise<ServerClaims | undefined>

/** `findServerClaims`, batched for concurrent callers. */
export const openClaimsReading = (db: Queries): ClaimsReading =>
  openGroupRead((servers: readonly ServerId[]) => findServersClaims(db, servers))

const holderOfWanted = sql<string>`${sql.lit(serverHolder(''))} || wanted.server_id`

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
    readonly interfaces: readonly InterfaceRow[]
    readonly storages: readonly Pick<
      Selectable<Tables['storage_claim']>,
      'storage_id' | 'volume' | 'slot' | 'phase' | 'is_forced'
    >[]
  }

function toServerClaims(row: ClaimsRow): ServerClaims {
  const sizeChange = toSizeChange(row)
  return {
    ...defined({ sizeChange }),
    ...(row.interfaces.length === 0 ? {} : { interfaces: row.interfaces.map(toClaimedInterface) }),
    macAddress: row.value,
    addresses: row.addresses.map(toHeldAddress),
    disks: row.storages.flatMap(({ storage_id: storageId, volume, slot, phase }) =>
      phase === 'attached' && volume !== null && slot !== null ? [{ storageId, volume, slot }] : [],
    ),
    forcedVolumes: row.storages.flatMap(({ volume, phase, is_forced: isForced }) =>
      phase === 'leaving' && isForced && volume !== null ? [volume] : [],
    ),
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

/** Servers that claimed their room before the given time. */
export async function listServersWithClaims(
  db: Queries,
  claimedBefore: Date,
): Promise<readonly (ServerId & { readonly zone: string })[]> {
  const rows = await db
    .selectFrom('placement')
    .select(['account_id', 'server_id', 'zone'])
    .where('claimed_at', '<', claimedBefore)
    .execute()
  return rows.map((row) => ({ accountId: row.account_id, serverId: row.server_id, zone: row.zone }))
}

/** Machines of that owner that have room. */
export const listManagedServers = async (
  db: Queries,
  { accountId, managedBy }: { readonly accountId: string; readonly managedBy: string },
): Promise<readonly string[]> =>
  (
    await selectWhere(db, 'placement', { account_id: accountId, managed_by: managedBy })
      .select('server_id')
      .orderBy('server_id')
      .execute()
  ).map(({ server_id: serverId }) => serverId)

/** Whether such an account exists, for ids taken from namespace names, which may be any text. */
export async function accountExists(db: Queries, accountId: string): Promise<boolean> {
  return (
    isUuid(accountId) &&
    (await selectWhere(db, 'account', { id: accountId }).select('id').executeTakeFirst()) !== undefined
  )
}
