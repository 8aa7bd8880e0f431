/** What holds a storage: its snapshots, and copies that are being made of it. While there is a hold, the storage is not
 *  deleted, and data on the disks of one host stay on that host, because a snapshot cannot move without its disk.
 *  Snapshots that the platform creates before a restore keep only the data in their place: they are deleted with the
 *  storage. A hold is claimed with the server or the storage locked, like moves, rebuilds and deletions: one of two
 *  wins. */
import { sql, type Transaction } from 'kysely'
import { conflict } from '../../domain/problem.ts'
import type { Queries } from '../kit/open.ts'
import { lockPlacement } from '../placement/index.ts'
import type { Tables } from '../tables.ts'
import { deleteWhere, selectWhere } from '../kit/where.ts'

export interface Hold {
  readonly accountId: string
  /** Such as `snapshot/<id>`. */
  readonly holder: string
  readonly storageId: string
  /** For a boot storage: the server that boots from it. */
  readonly bootServerId: string | undefined
  /** The data are on shared storage, which every host of the zone sees. */
  readonly isShared: boolean
}

export const snapshotHolder = (snapshotId: string): `snapshot/${string}` => `snapshot/${snapshotId}`
/** For a snapshot that was created before a restore. */
export const safetyHolder = (snapshotId: string): string => `safety/${snapshotId}`
/** For the copy that is created as this storage. */
export const copyHolder = (storageId: string): string => `copy/${storageId}`

export const insertHold = async (tx: Transaction<Tables>, hold: Hold): Promise<void> =>
  void (await tx
    .insertInto('storage_hold')
    .values({
      account_id: hold.accountId,
      holder: hold.holder,
      storage_id: hold.storageId,
      server_id: hold.bootServerId ?? null,
      is_shared: hold.isShared,
    })
    .onConflict((again) => again.doNothing())
    .execute())

/** Does nothing when there is none. */
export const releaseHold = async (
  tx: Transaction<Tables>,
  { accountId, holder }: Pick<Hold, 'accountId' | 'holder'>,
): Promise<void> => void (await deleteWhere(tx, 'storage_hold', { account_id: accountId, holder }).execute())

export async function hasHold(
  db: Queries,
  { accountId, holder }: Pick<Hold, 'accountId' | 'holder'>,
): Promise<boolean> {
  const row = await selectWhere(db, 'storage_hold', { account_id: accountId, holder })
    .select('holder')
    .executeTakeFirst()
  return row !== undefined
}

interface OfStorage {
  readonly accountId: string
  readonly storageId: string
}

/** Whether something prevents the deletion of the storage, moving its data elsewhere, and moving the storage itself to
 *  another host. */
export async function readHolds(
  db: Queries,
  id: OfStorage,
): Promise<{ readonly isKept: boolean; readonly isInPlace: boolean; readonly isOnHost: boolean }> {
  const holds = await holdsOf(db, id).execute()
  return {
    isKept: holds.some(({ holder }) => !holder.startsWith(safetyHolder(''))),
    isInPlace: holds.length > 0,
    isOnHost: holds.some(({ is_shared }) => !is_shared),
  }
}

/** Throws the Problem `in_use` (409) while the storage has snapshots, or is copied, and therefore cannot move to
 *  another host: its data would be copied there without them. Data that stay in their shared storage keep their
 *  snapshots. */
export const requireMovable = (
  db: Queries,
  id: OfStorage,
  { staysShared }: { readonly staysShared: boolean },
): Promise<void> => refuseHeld(id, staysShared ? holdsOf(db, id).where('is_shared', '=', false) : holdsOf(db, id))

/** Throws the Problem `in_use` (409) while the storage has snapshots, or is copied, except for snapshots that are
 *  deleted with it. */
export const requireNotKept = (db: Queries, id: OfStorage): Promise<void> =>
  refuseHeld(id, holdsOf(db, id).where('holder', 'not like', safetyHolder('%')))

async function refuseHeld(id: OfStorage, holds: ReturnType<typeof holdsOf>): Promise<void> {
  const hold = await holds.executeTakeFirst()
  if (hold !== undefined)
    throw conflict('in_use', `The storage ${whyOf(hold.holder)}`, {
      resource: { type: 'storage', id: id.storageId },
    })
}

/** As `requireNotKept`, for the boot disk of the server, which is locked: `requireNoEnd` refuses later holds. */
export async function requireNoBootHolds(
  tx: Transaction<Tables>,
  { accountId, serverId }: { readonly accountId: string; readonly serverId: string },
): Promise<void> {
  await lockPlacement(tx, { accountId, serverId })
  const hold = await selectWhere(tx, 'storage_hold', { account_id: accountId, server_id: serverId })
    .selectAll()
    .where('holder', 'not like', safetyHolder('%'))
    .executeTakeFirst()
  if (hold !== undefined)
    throw conflict('in_use', `Its boot storage ${whyOf(hold.holder)}`, {
      resource: { type: 'storage', id: hold.storage_id },
    })
}

/** Operations that end the disk of a storage, or the boot disk of a server. */
const ENDS = { server: ['server.delete', 'server.rebuild'], storage: ['storage.delete'] } as const

/** Throws `state_not_allowed` (409) while a change that ends the disk was accepted and may not be visible in Kubernetes
 *  yet. The caller that holds the storage reads Kubernetes after this. */
export async function requireNoEnd(
  tx: Transaction<Tables>,
  { accountId, storageId, bootServerId }: Pick<Hold, 'accountId' | 'storageId' | 'bootServerId'>,
): Promise<void> {
  const [type, id] =
    bootServerId === undefined ? (['storage', storageId] as const) : (['server', bootServerId] as const)
  const ending = await selectWhere(tx, 'change_intent', { account_id: accountId, resource_type: type, resource_id: id })
    .select('operation_id')
    .where(sql`audit ->> 'action'`, 'in', ENDS[type])
    .executeTakeFirst()
  if (ending !== undefined)
    throw conflict('state_not_allowed', `The ${type} is being deleted or rebuilt. Try again in a minute.`, {
      resource: { type, id },
    })
}

/** Throws `in_use` (409) when data of the server may not move to another host, or, `isLeaving`, to another zone. */
export async function requireNoMoveHolds(
  tx: Transaction<Tables>,
  {
    accountId,
    serverId,
    isLeaving,
  }: { readonly accountId: string; readonly serverId: string; readonly isLeaving: boolean },
): Promise<void> {
  const hold = await selectWhere(tx, 'storage_hold', { account_id: accountId })
    .selectAll()
    .where((row) =>
      row.or([
        row('server_id', '=', serverId),
        row(
          'storage_id',
          'in',
          row
            .selectFrom('storage_claim')
            .select('storage_id')
            .where('account_id', '=', accountId)
            .where('server_id', '=', serverId),
        ),
      ]),
    )
    .$if(!isLeaving, (query) => query.where('is_shared', '=', false))
    .executeTakeFirst()
  if (hold !== undefined)
    throw conflict(
      'in_use',
      `Storage ${hold.storage_id} of the server cannot go to another ${isLeaving ? 'zone' : 'host'}: it ` +
        whyOf(hold.holder),
      { resource: { type: 'storage', id: hold.storage_id } },
    )
}

/** Throws `in_use` (409) when the data of the storage may not move to another host. */
export async function requireNoLocalHolds(tx: Transaction<Tables>, id: OfStorage): Promise<void> {
  const hold = await holdsOf(tx, id).where('is_shared', '=', false).executeTakeFirst()
  if (hold !== undefined)
    throw conflict(
      'in_use',
      `The server is on another host than the storage, which cannot go there: it ${whyOf(hold.holder)}`,
      { resource: { type: 'storage', id: id.storageId } },
    )
}

/** The storages of the accounts whose data a hold keeps on the disks of their host, each with the server that it is
 *  attached to. */
export async function listHeldOnHosts(
  db: Queries,
  accounts: readonly string[],
): Promise<readonly (OfStorage & { readonly serverId: string | undefined })[]> {
  if (accounts.length === 0) return []
  const rows = await db
    .selectFrom('storage_hold as hold')
    .leftJoin('storage_claim as claim', (join) =>
      join.onRef('claim.account_id', '=', 'hold.account_id').onRef('claim.storage_id', '=', 'hold.storage_id'),
    )
    .select(['hold.account_id', 'hold.storage_id', 'hold.server_id as boot_server_id', 'claim.server_id'])
    .where('hold.account_id', 'in', accounts)
    .where('hold.is_shared', '=', false)
    .execute()
  return rows.map(({ account_id: accountId, storage_id: storageId, boot_server_id, server_id }) => ({
    accountId,
    storageId,
    serverId: boot_server_id ?? server_id ?? undefined,
  }))
}

const holdsOf = (db: Queries, { accountId, storageId }: OfStorage) =>
  selectWhere(db, 'storage_hold', { account_id: accountId, storage_id: storageId }).selectAll()

const whyOf = (holder: string): string =>
  holder.startsWith(copyHolder(''))
    ? 'is being copied. Try again when the copy is online.'
    : 'has snapshots. Delete them first.'
