/** Public addresses: the pools of the PublicPool objects, and the holders of their addresses. A pool allocates in
 *  order. A released address is reused only after every address of the zone's pools was allocated once; the one that
 *  was released first is reused first. Either reads one row, regardless of the size of the pool. */
import { type Expression, type Selectable, sql, type Transaction } from 'kysely'
import { conflict, type Problem, unavailable } from '../../domain/problem.ts'
import {
  givenFamily,
  poolAddress,
  type PoolNetwork,
  type PublicPoolState,
  poolTotal,
  type PoolUse,
  type PublicAddress,
} from '../../domain/public-pool/rules.ts'
import type { Queries } from '../kit/open.ts'
import type { Holding } from '../account/index.ts'
import { isInUseByOthers } from '../claim/index.ts'
import { requireLook } from '../look/index.ts'
import type { Tables } from '../tables.ts'
import { deleteWhere, selectWhere, updateWhere } from '../kit/where.ts'

export interface AddressPool extends Omit<PoolNetwork, 'isPrivate'> {
  readonly id: string
  readonly zone: string
  readonly state: PublicPoolState
}

/** Updates the mirror; network and use of a pool never change.
 *  Throws the Problem `in_use` (409) when the network overlaps another pool's; the transaction must then be rolled
 *  back. */
export async function mirrorPool(tx: Transaction<Tables>, pool: AddressPool): Promise<void> {
  const updated = await updateWhere(tx, 'public_pool', { id: pool.id }).set({ state: pool.state }).executeTakeFirst()
  if (updated.numUpdatedRows > 0n) return
  const { id, zone, family, cidr, use, state, gateway = null } = pool
  const result = await tx
    .insertInto('public_pool')
    .values({ id, zone, family, cidr, use, state, gateway, total: poolTotal(cidr) })
    .onConflict((clash) => clash.doNothing())
    .executeTakeFirst()
  if (result.numInsertedOrUpdatedRows === 0n) throw poolOverlap(cidr, await findOverlap(tx, pool))
}

const findOverlap = async (db: Queries, { id, cidr }: Pick<AddressPool, 'id' | 'cidr'>): Promise<string> =>
  (
    await db
      .selectFrom('public_pool')
      .select('id')
      .where('id', '<>', id)
      .where(sql<boolean>`cidr && ${cidr}::cidr`)
      .orderBy('id')
      .executeTakeFirst()
  )?.id ?? ''

/** 409 that names the other pool; `id` is empty when that one was deleted meanwhile. */
export const poolOverlap = (cidr: string, id: string): Problem =>
  conflict(
    'in_use',
    `The network ${cidr} overlaps that of another pool.`,
    id === '' ? {} : { resource: { type: 'public_pool', id } },
  )

/** Deletes a pool without used addresses, together with replaced addresses that were still routed. Returns true when it
 *  was deleted. */
export async function forgetPool(tx: Transaction<Tables>, id: string): Promise<boolean> {
  const pool = await selectWhere(tx, 'public_pool', { id }).select('id').forUpdate().executeTakeFirst()
  if (pool === undefined) return true
  await deleteWhere(tx, 'public_address', { pool_id: id, is_current: false }).execute()
  if (
    (await selectWhere(tx, 'public_address', { pool_id: id }).select('index').limit(1).executeTakeFirst()) !== undefined
  )
    return false
  await deleteWhere(tx, 'public_pool', { id }).execute()
  return true
}

/** Undefined for a pool that was never mirrored. */
export async function findPool(db: Queries, id: string): Promise<AddressPool | undefined> {
  const row = await selectWhere(db, 'public_pool', { id }).selectAll().executeTakeFirst()
  return row && toPool(row)
}

/** The pools of the zone, by id, as last mirrored from PublicPool objects. Deleted pools are not among them. */
export const listPools = async (db: Queries, zone: string): Promise<readonly AddressPool[]> =>
  (await selectWhere(db, 'public_pool', { zone }).selectAll().orderBy('id').execute()).map(toPool)

const toPool = ({ id, zone, family, cidr, use, state, gateway }: Selectable<Tables['public_pool']>): AddressPool => ({
  id,
  zone,
  family,
  cidr,
  use,
  state,
  ...(gateway === null ? {} : { gateway }),
})

/** Number of used addresses by pool; replaced ones do not count. Pools without any are missing. */
export async function countAllocated(db: Queries, pools: readonly string[]): Promise<ReadonlyMap<string, number>> {
  if (pools.length === 0) return new Map()
  const rows = await selectWhere(db, 'public_address', { is_current: true })
    .select(['pool_id', (row) => row.fn.countAll<number>().as('count')])
    .where('pool_id', 'in', [...pools])
    .groupBy('pool_id')
    .execute()
  return new Map(rows.map((row) => [row.pool_id, Number(row.count)]))
}

/** The verified owners of accounts whose servers have addresses of the pool, each once. */
export async function listHolderMails(db: Queries, pool: string): Promise<readonly string[]> {
  const rows = await db
    .selectFrom('public_address')
    .innerJoin('membership', 'membership.account_id', 'public_address.account_id')
    .innerJoin('app_user', 'app_user.id', 'membership.user_id')
    .select('app_user.email')
    .distinct()
    .where('public_address.pool_id', '=', pool)
    .where('public_address.is_current', '=', true)
    .where('public_address.holder', 'like', 'server/%')
    .where('membership.role', '=', 'owner')
    .where('app_user.email_verified_at', 'is not', null)
    .where('app_user.disabled_at', 'is', null)
    .orderBy('app_user.email')
    .execute()
  return rows.map(({ email }) => email)
}

/** An address, as its holder sees it. */
export interface HeldAddress extends PublicAddress {
  readonly use: PoolUse
  /** False when another one has replaced it; it is still routed to its holder. */
  readonly isCurrent: boolean
  /** Its pool allocates nothing any longer. */
  readonly isDraining: boolean
}

/** The current one of each use first. */
export const listAddresses = async (db: Queries, holding: Holding): Promise<readonly HeldAddress[]> =>
  (await heldAddresses(db, holding).execute()).map(toHeldAddress)

/** The query of `listAddresses`, also as part of another query whose columns name the holder. */
export const heldAddresses = (
  db: Queries,
  { accountId, holder }: { readonly [Name in keyof Holding]: string | Expression<string> },
) =>
  db
    .selectFrom('public_address')
    .innerJoin('public_pool', 'public_pool.id', 'public_address.pool_id')
    .select(HELD_COLUMNS)
    .where('public_address.account_id', '=', accountId)
    .where('public_address.holder', '=', holder)
    .orderBy('public_address.use')
    .orderBy('public_address.is_current', 'desc')
    .orderBy('public_address.index')
    .orderBy('public_address.pool_id')

const HELD_COLUMNS = [
  'public_address.index',
  'public_address.use',
  'public_address.is_current',
  'public_pool.family',
  'public_pool.cidr',
  'public_pool.gateway',
  'public_pool.state',
] as const
export type HeldRow = Pick<Selectable<Tables['public_address']>, 'index' | 'use' | 'is_current'> &
  Pick<Selectable<Tables['public_pool']>, 'family' | 'cidr' | 'gateway' | 'state'>

/** Of a row that `heldAddresses` selects. */
export const toHeldAddress = ({ index, use, is_current, family, cidr, gateway, state }: HeldRow): HeldAddress => ({
  ...poolAddress({ family, cidr, ...(gateway === null ? {} : { gateway }) }, index),
  use,
  isCurrent: is_current,
  isDraining: state !== 'active',
})

/** Whether the zone has pools of the use, in any state. */
const hasPools = async (db: Queries, zone: string, use: PoolUse): Promise<boolean> =>
  (await selectWhere(db, 'public_pool', { zone, use }).select('id').limit(1).executeTakeFirst()) !== undefined

/** Whether an address is free at this moment. */
export async function hasFreeAddress(db: Queries, zone: string, use: PoolUse): Promise<boolean> {
  const row = await selectWhere(db, 'public_pool', { zone, use, family: givenFamily(use), state: 'active' })
    .select('id')
    .where((pool) =>
      pool.or([
        pool('next_index', '<', pool.ref('total')),
        pool.exists(
          pool
            .selectFrom('public_address')
            .select('public_address.index')
            .whereRef('public_address.pool_id', '=', 'public_pool.id')
            .where('holder', 'is', null),
        ),
      ]),
    )
    .limit(1)
    .executeTakeFirst()
  return row !== undefined
}

/** Whether somebody holds one of the addresses. */
export const isAnyHeld = async (db: Queries, addresses: readonly string[]): Promise<boolean> =>
  addresses.length > 0 &&
  (await db
    .selectFrom('public_address')
    .select('address')
    .where('address', 'in', addresses)
    .where('holder', 'is not', null)
    .limit(1)
    .executeTakeFirst()) !== undefined

/** 503 for an address that the zone cannot allocate. */
export const noFreeAddress = (
  zone: string,
  use: PoolUse,
  remedy = 'Choose another zone, or try again later.',
): Problem =>
  unavailable(
    'no_free_address',
    `Zone ${zone} has no free ${use === 'server_ipv6_prefix' ? 'IPv6 prefix' : 'public IPv4 address'} now. ${remedy}`,
  )

/** Allocates an address of an active pool of the zone as the holder's current one; the previous one stays routed to it.
 *  The last claim of a transaction: the row of the pool stays locked until its end.
 *  Throws the Problem `no_free_address` (503) when every pool is empty. */
export async function takeAddress(
  tx: Transaction<Tables>,
  { zone, use, accountId, holder }: Holding & { readonly zone: string; readonly use: PoolUse },
): Promise<void> {
  await requireLook(tx)
  await updateWhere(tx, 'public_address', { account_id: accountId, holder, use, is_current: true })
    .set({ is_current: false })
    .execute()
  const held = { account_id: accountId, holder, is_current: true }
  const isFree = async (address: string): Promise<boolean> =>
    !(await isInUseByOthers(tx, { accountId, holder }, { kind: 'address', scope: '', value: address }))
  for (let fresh = await takeFresh(tx, zone, use); fresh !== undefined; fresh = await takeFresh(tx, zone, use)) {
    const index = fresh.next_index - 1
    const { address } = poolAddress(toPool(fresh), index)
    const free = await isFree(address)
    await tx
      .insertInto('public_address')
      .values({ pool_id: fresh.id, index, use, address, ...(free ? held : NOBODYS) })
      .execute()
    if (free) return
  }
  const rested = await tx
    .selectFrom('public_address')
    .innerJoin('public_pool', 'public_pool.id', 'public_address.pool_id')
    .select(['public_address.pool_id', 'public_address.index'])
    .where('public_pool.zone', '=', zone)
    .where('public_pool.use', '=', use)
    .where('public_pool.family', '=', givenFamily(use))
    .where('public_pool.state', '=', 'active')
    .where('public_address.holder', 'is', null)
    .where(({ not, exists, selectFrom }) =>
      not(
        exists(
          selectFrom('host_use')
            .select('value')
            .where('kind', '=', 'address')
            .whereRef('value', '=', 'public_address.address')
            .where(sql<boolean>`(host_use.account_id, host_use.holder) <> (${accountId}::uuid, ${holder})`),
        ),
      ),
    )
    .orderBy('public_address.released_number')
    .limit(1)
    .forUpdate('public_address')
    .skipLocked()
    .executeTakeFirst()
  if (rested === undefined) throw noFreeAddress(zone, use)
  await updateWhere(tx, 'public_address', { pool_id: rested.pool_id, index: rested.index }).set(held).execute()
}

/** An address that was never allocated but is used all the same. */
const NOBODYS = { account_id: null, holder: null, is_current: false }

/** The pool of the next address that was never allocated; undefined when there is none. */
const takeFresh = (tx: Transaction<Tables>, zone: string, use: PoolUse) =>
  tx
    .updateTable('public_pool')
    .set((row) => ({ next_index: row('next_index', '+', 1) }))
    .where('id', '=', (pool) =>
      pool
        .selectFrom('public_pool')
        .select('id')
        .where('zone', '=', zone)
        .where('use', '=', use)
        .where('family', '=', givenFamily(use))
        .where('state', '=', 'active')
        .whereRef('next_index', '<', 'total')
        .orderBy('id')
        .limit(1)
        .forUpdate(),
    )
    .returningAll()
    .executeTakeFirst()

/** For a server: a /64 in a zone that has prefixes to allocate, and the requested IPv4 address. In the order of the
 *  uses, so that transactions lock pools in one order. */
export async function claimAddresses(
  tx: Transaction<Tables>,
  holding: Holding,
  { zone, publicIpv4 = false }: { readonly zone: string; readonly publicIpv4?: boolean | undefined },
): Promise<readonly HeldAddress[]> {
  const known = await listAddresses(tx, holding)
  const missing = (await usesOf(tx, { zone, publicIpv4 })).filter(
    (use) => !known.some((address) => address.use === use && address.isCurrent),
  )
  for (const use of missing) await takeAddress(tx, { ...holding, zone, use })
  return missing.length === 0 ? known : listAddresses(tx, holding)
}

/** The same for new holders. Returns the addresses by holder; holders without any are missing. */
export async function claimFirstAddresses(
  tx: Transaction<Tables>,
  holdings: readonly Holding[],
  demand: { readonly zone: string; readonly publicIpv4?: boolean | undefined },
): Promise<ReadonlyMap<string, readonly HeldAddress[]>> {
  const uses = await usesOf(tx, demand)
  for (const use of uses) for (const holding of holdings) await takeAddress(tx, { ...holding, zone: demand.zone, use })
  const addresses = new Map<string, readonly HeldAddress[]>()
  if (uses.length > 0) for (const holding of holdings) addresses.set(holding.holder, await listAddresses(tx, holding))
  return addresses
}

const usesOf = async (
  tx: Transaction<Tables>,
  { zone, publicIpv4 = false }: { readonly zone: string; readonly publicIpv4?: boolean | undefined },
): Promise<readonly PoolUse[]> => [
  ...(publicIpv4 ? (['server_ipv4'] as const) : []),
  ...((await hasPools(tx, zone, 'server_ipv6_prefix')) ? (['server_ipv6_prefix'] as const) : []),
]

/** Transfers all addresses of one holder to another, replacing the other's. */
export async function passAddresses(
  tx: Transaction<Tables>,
  { accountId, holder: from }: Holding,
  to: string,
): Promise<void> {
  await releaseAddresses(tx, { accountId, holder: to })
  await updateWhere(tx, 'public_address', { account_id: accountId, holder: from }).set({ holder: to }).execute()
}

/** Releases all addresses of the holder, replaced ones too. Idempotent. */
export async function releaseAddresses(tx: Transaction<Tables>, { accountId, holder }: Holding): Promise<void> {
  await updateWhere(tx, 'public_address', { account_id: accountId, holder })
    .set({
      account_id: null,
      holder: null,
      is_current: false,
      released_number: sql<number>`nextval('public_address_release')`,
    })
    .execute()
}
