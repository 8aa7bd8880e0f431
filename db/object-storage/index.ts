/** Object storage of accounts: where it is, its key, and how much it contained when it was last measured. The row is
 *  the claim: an account has one in each zone. */
import { sql, type Transaction } from 'kysely'
import { nameTaken } from '../../domain/problem.ts'
import { DEFAULT_QUOTAS, ZONE_QUOTA } from '../../domain/account/quota.ts'
import { readStanding } from '../account/index.ts'
import type { Queries } from '../kit/open.ts'
import type { ObjectStorageMove, Tables } from '../tables.ts'
import { inTurn, type Turn } from '../turn/index.ts'
import { deleteWhere, selectWhere, updateWhere } from '../kit/where.ts'
import { camelRow } from '../kit/row.ts'

const TURN_WAIT_MILLISECONDS = 10_000

export interface ObjectStorageRow {
  readonly id: string
  readonly accountId: string
  readonly zone: string
  readonly accessKeyId: string
  /** For `objectStorageOwner`. */
  readonly sealedSecret: string
  /** Prefix of the names of its buckets, where those of all accounts share a name space. */
  readonly bucketPrefix: string
  /** The backend that stores its objects. */
  readonly backend: Tables['object_storage']['backend']
  /** While it moves to the gateway. */
  readonly move: ObjectStorageMove | null
  /** When the gateway became its backend, if it was on the single host before. */
  readonly movedAt: Date | null
  readonly usedBytes: number
  readonly objectCount: number
  readonly usageMeasuredAt: Date | null
  /** Increases with every new secret, from 1. */
  readonly generation: number
  readonly createdAt: Date
}

export type NewObjectStorage = Pick<
  ObjectStorageRow,
  'id' | 'accountId' | 'zone' | 'accessKeyId' | 'sealedSecret' | 'bucketPrefix' | 'backend' | 'createdAt'
>

/** The owner that the secret is sealed for. */
export const objectStorageOwner = (accountId: string, id: string): string => `object_storage/${accountId}/${id}`
/** The name of the tenant in the store. */
export const tenantOf = ({ accountId, id }: Pick<ObjectStorageRow, 'accountId' | 'id'>): string => `${accountId}.${id}`

/** Creates the row, once: one with its id stays as it is. Throws the Problem `name_taken` (409) when the account has
 *  another one in the zone. */
export async function addObjectStorage(tx: Transaction<Tables>, storage: NewObjectStorage): Promise<void> {
  const added = await tx
    .insertInto('object_storage')
    .values({
      account_id: storage.accountId,
      id: storage.id,
      zone: storage.zone,
      access_key_id: storage.accessKeyId,
      sealed_secret: storage.sealedSecret,
      bucket_prefix: storage.bucketPrefix,
      backend: storage.backend,
      used_bytes: 0,
      object_count: 0,
      generation: 1,
      created_at: storage.createdAt,
    })
    .onConflict((conflicting) => conflicting.doNothing())
    .executeTakeFirst()
  if (added.numInsertedOrUpdatedRows !== 0n) return
  const known = await findObjectStorage(tx, storage.accountId, storage.id)
  if (known?.zone === storage.zone) return
  const holder = await findObjectStorageIn(tx, storage.accountId, storage.zone)
  throw nameTaken('The account has object storage in this zone.', holder && { type: 'object_storage', id: holder.id })
}

/** Undefined for unknown ids and those of another account. */
export async function findObjectStorage(
  db: Queries,
  accountId: string,
  id: string,
): Promise<ObjectStorageRow | undefined> {
  const row = await selectWhere(db, 'object_storage', { account_id: accountId, id }).selectAll().executeTakeFirst()
  return row && camelRow(row)
}

/** Of the account in the zone; undefined where it is not enabled. */
export async function findObjectStorageIn(
  db: Queries,
  accountId: string,
  zone: string,
): Promise<ObjectStorageRow | undefined> {
  const row = await selectWhere(db, 'object_storage', { account_id: accountId, zone }).selectAll().executeTakeFirst()
  return row && camelRow(row)
}

/** By zone. */
export async function listObjectStorages(db: Queries, accountId: string): Promise<readonly ObjectStorageRow[]> {
  const rows = await selectWhere(db, 'object_storage', { account_id: accountId }).selectAll().orderBy('zone').execute()
  return rows.map(camelRow)
}

/** Returns the row with the new secret; undefined when it is deleted. */
export async function replaceObjectStorageSecret(
  tx: Transaction<Tables>,
  { accountId, id }: Pick<ObjectStorageRow, 'accountId' | 'id'>,
  sealedSecret: string,
): Promise<ObjectStorageRow | undefined> {
  const row = await updateWhere(tx, 'object_storage', { account_id: accountId, id })
    .set((columns) => ({ sealed_secret: sealedSecret, generation: columns('generation', '+', 1) }))
    .returningAll()
    .executeTakeFirst()
  return row && camelRow(row)
}

/** Nobody else configures a store for it meanwhile: the store gets the state of the row, regardless of who changes it.
 *  `work` gets the row as it is then; undefined when it is deleted. */
export const whileTelling = <Result>(
  parts: Parameters<typeof inTurn>[0],
  { accountId, id }: Pick<ObjectStorageRow, 'accountId' | 'id'>,
  work: (turn: Turn, row: ObjectStorageRow | undefined) => Promise<Result>,
  ifBusy: () => Result,
): Promise<Result> =>
  inTurn(
    parts,
    { name: `object_storage/${id}`, waitMilliseconds: TURN_WAIT_MILLISECONDS },
    async (turn) => work(turn, await findObjectStorage(parts.db, accountId, id)),
    ifBusy,
  )

/** Records a measurement of the store. A measurement that was earlier than the last one changes nothing. */
export async function recordObjectStorageUsage(
  db: Queries,
  { accountId, id }: Pick<ObjectStorageRow, 'accountId' | 'id'>,
  usage: { readonly usedBytes: number; readonly objectCount: number; readonly measuredAt: Date },
): Promise<void> {
  await updateWhere(db, 'object_storage', { account_id: accountId, id })
    .set({
      used_bytes: usage.usedBytes,
      object_count: usage.objectCount,
      usage_measured_at: usage.measuredAt,
    })
    .where((where) =>
      where.or([where('usage_measured_at', 'is', null), where('usage_measured_at', '<=', usage.measuredAt)]),
    )
    .execute()
}

type RowId = Pick<ObjectStorageRow, 'accountId' | 'id'>

/** One step of the move. Returns false and changes nothing when another process has done one meanwhile. */
export async function recordObjectStorageMove(
  db: Queries,
  { accountId, id, move: before }: RowId & Pick<ObjectStorageRow, 'move'>,
  move: ObjectStorageMove | null,
): Promise<boolean> {
  const written = await updateWhere(db, 'object_storage', { account_id: accountId, id, backend: 'svc-s3-single' })
    .set({ move: move === null ? null : JSON.stringify(move) })
    .where(
      before === null
        ? sql<boolean>`move is null`
        : sql<boolean>`move->>'operationId' = ${before.operationId} and (move->>'version')::int = ${before.version}`,
    )
    .executeTakeFirst()
  return written.numUpdatedRows > 0n
}

/** From now on the gateway stores its objects. */
export async function switchObjectStorage(
  tx: Transaction<Tables>,
  { accountId, id }: RowId,
  movedAt: Date,
): Promise<void> {
  await updateWhere(tx, 'object_storage', { account_id: accountId, id })
    .set({ backend: 'rgw', move: null, moved_at: movedAt })
    .execute()
}

/** Does nothing when it is deleted. */
export async function removeObjectStorage(
  db: Queries,
  { accountId, id }: Pick<ObjectStorageRow, 'accountId' | 'id'>,
): Promise<void> {
  await deleteWhere(db, 'object_storage', { account_id: accountId, id }).execute()
}

const GIBIBYTE = 1024 ** 3

/** How much the account may store in each zone. */
export async function objectStorageQuotaBytes(db: Queries, accountId: string): Promise<number> {
  const row = await selectWhere(db, 'account_quota', { account_id: accountId, name: ZONE_QUOTA })
    .select('limit')
    .executeTakeFirst()
  return (row?.limit ?? DEFAULT_QUOTAS[ZONE_QUOTA]) * GIBIBYTE
}

/** What the account stores in the zone where it stores most, in GiB, rounded up. */
export async function objectStorageUsedGibibytes(db: Queries, accountId: string): Promise<number> {
  const row = await selectWhere(db, 'object_storage', { account_id: accountId })
    .select(({ fn }) => fn.max('used_bytes').as('bytes'))
    .executeTakeFirst()
  return Math.ceil(Number(row?.bytes ?? 0) / GIBIBYTE)
}

export interface TenantFacts extends Pick<ObjectStorageRow, 'accessKeyId' | 'bucketPrefix'> {
  readonly quotaBytes: number
  readonly isSuspended: boolean
  readonly isFrozen: boolean
  readonly toldAt: number
}

/** The state of the account's tenant for the store, without its secret. A suspended account cannot add anything. To
 *  write it to a store, the caller must have the tenant's turn, so that a later write is newer. */
export async function tenantFacts(db: Queries, row: ObjectStorageRow, now: Date): Promise<TenantFacts> {
  const standing = await readStanding(db, row.accountId, now)
  return {
    accessKeyId: row.accessKeyId,
    bucketPrefix: row.bucketPrefix,
    quotaBytes: await objectStorageQuotaBytes(db, row.accountId),
    isSuspended: standing.suspendedByStaffAt !== null || standing.suspendedForPaymentAt !== null,
    isFrozen: row.move !== null && row.move.phase !== 'live',
    toldAt: await microseconds(db),
  }
}

/** By the clock of the database, which all writers to a store share. */
async function microseconds(db: Queries): Promise<number> {
  const { rows } = await sql<{ at: number }>`
    select (extract(epoch from clock_timestamp()) * 1000000)::bigint as at`.execute(db)
  return Number(rows[0]?.at)
}
