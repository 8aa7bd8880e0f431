/** Archives of managed databases: where each is and its credentials. An archive is kept for a while when its database
 *  is deleted. */
import { type Selectable, sql, type Transaction } from 'kysely'
import type { DatabaseOrigin } from '../../domain/database/rules.ts'
import { notFound } from '../../domain/problem.ts'
import type { Queries } from '../kit/open.ts'
import type { Tables } from '../tables.ts'
import type { DatabaseId } from './claims.ts'
import { deleteWhere, selectWhere, updateWhere } from '../kit/where.ts'

export interface ArchiveRow extends DatabaseId {
  readonly zone: string
  readonly accessKeyId: string
  /** For `archiveSecretOwner` and `archiveCipherOwner`. */
  readonly sealedSecret: string
  readonly sealedCipherKey: string
  readonly bucketPrefix: string
  /** Of an archive whose database is deleted. */
  readonly origin: DatabaseOrigin | null
  readonly keptUntil: Date | null
}

export type NewArchive = Omit<ArchiveRow, 'origin' | 'keptUntil'>

/** The owner that the secrets are sealed for. */
export const archiveSecretOwner = ({ accountId, databaseId }: DatabaseId): string =>
  `database_archive/${accountId}/${databaseId}`
export const archiveCipherOwner = ({ accountId, databaseId }: DatabaseId): string =>
  `database_cipher/${accountId}/${databaseId}`
/** Its name and bucket in the store. */
export const archiveTenantOf = ({ bucketPrefix }: Pick<ArchiveRow, 'bucketPrefix'>): string =>
  `database-archive.${bucketPrefix}`
export const archiveBucketOf = ({ bucketPrefix }: Pick<ArchiveRow, 'bucketPrefix'>): string => `${bucketPrefix}archive`

const toArchive = (row: Selectable<Tables['database_archive']>): ArchiveRow => ({
  accountId: row.account_id,
  databaseId: row.id,
  zone: row.zone,
  accessKeyId: row.access_key_id,
  sealedSecret: row.sealed_secret,
  sealedCipherKey: row.sealed_cipher_key,
  bucketPrefix: row.bucket_prefix,
  origin: row.origin,
  keptUntil: row.kept_until,
})

/** An existing one stays as it is. */
export async function addArchive(db: Queries, archive: NewArchive): Promise<void> {
  await db
    .insertInto('database_archive')
    .values({
      account_id: archive.accountId,
      id: archive.databaseId,
      zone: archive.zone,
      access_key_id: archive.accessKeyId,
      sealed_secret: archive.sealedSecret,
      sealed_cipher_key: archive.sealedCipherKey,
      bucket_prefix: archive.bucketPrefix,
    })
    .onConflict((clash) => clash.columns(['account_id', 'id']).doNothing())
    .execute()
}

/** Undefined when there is none, or no longer. */
export async function findArchive(db: Queries, { accountId, databaseId }: DatabaseId): Promise<ArchiveRow | undefined> {
  const row = await selectWhere(db, 'database_archive', { account_id: accountId, id: databaseId })
    .selectAll()
    .executeTakeFirst()
  return row && toArchive(row)
}

const later = (until: Date) => sql<Date>`greatest(kept_until, ${until})`

/** It is kept until then, regardless of its database. Throws 404 when it is deleted or being deleted. */
export async function holdArchive(tx: Transaction<Tables>, { accountId, databaseId }: DatabaseId, until: Date) {
  const held = await updateWhere(tx, 'database_archive', { account_id: accountId, id: databaseId, is_ending: false })
    .set({ kept_until: later(until) })
    .returning('id')
    .executeTakeFirst()
  if (held === undefined) throw notFound('database')
}

/** Records that its database is deleted; the archive is kept until then at least. Does nothing without an archive. */
export async function retireArchive(
  tx: Transaction<Tables>,
  { accountId, databaseId }: DatabaseId,
  { origin, until }: { readonly origin: DatabaseOrigin; readonly until: Date },
): Promise<void> {
  await updateWhere(tx, 'database_archive', { account_id: accountId, id: databaseId })
    .set({ origin: JSON.stringify(origin), kept_until: later(until) })
    .execute()
}

/** Nobody may restore from it any longer: its retention is over, or its account is deleted. In parentheses, because it
 *  is combined with other conditions. */
const isExpired = (now: Date) => sql<boolean>`((origin is not null and kept_until <= ${now})
  or not exists (select from account where account.id = database_archive.account_id))`

const isEnding = (now: Date) => sql<boolean>`(is_ending or ${isExpired(now)})`

/** The archives from which nobody may restore any longer. */
export async function listExpiredArchives(db: Queries, now: Date): Promise<readonly DatabaseId[]> {
  const rows = await db.selectFrom('database_archive').select(['account_id', 'id']).where(isEnding(now)).execute()
  return rows.map(({ account_id: accountId, id: databaseId }) => ({ accountId, databaseId }))
}

/** Nobody can hold it from now on. Undefined when somebody does, or it is deleted. */
export async function endArchive(
  db: Queries,
  { accountId, databaseId }: DatabaseId,
  now: Date,
): Promise<ArchiveRow | undefined> {
  const row = await updateWhere(db, 'database_archive', { account_id: accountId, id: databaseId })
    .set({ is_ending: true })
    .where(isEnding(now))
    .returningAll()
    .executeTakeFirst()
  return row && toArchive(row)
}

/** Deletes the row of an ended archive. Its store is empty. */
export async function removeEndedArchive(db: Queries, { accountId, databaseId }: DatabaseId): Promise<void> {
  await deleteWhere(db, 'database_archive', { account_id: accountId, id: databaseId, is_ending: true }).execute()
}
