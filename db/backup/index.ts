/** The claims of backups in their account, and the key that seals them. */
import type { Transaction } from 'kysely'
import { backupQuota } from '../../domain/account/quota.ts'
import { releaseQuotas, takeQuotas } from '../account/index.ts'
import type { Queries } from '../kit/open.ts'
import type { Tables } from '../tables.ts'
import { selectWhere } from '../kit/where.ts'

export interface BackupId {
  readonly accountId: string
  readonly backupId: string
}

/** The owner that the sealed key of an account is bound to. */
export const backupKeyOwner = (accountId: string): string => `backup_key/${accountId}`

const holderOf = ({ backupId }: BackupId): `backup/${string}` => `backup/${backupId}`

export interface BackupClaim extends BackupId {
  /** Of the disk. */
  readonly sizeGibibytes: number
}

/** Does nothing when it is claimed already. Throws the Problem `quota_exceeded` (422); the transaction must then be
 *  rolled back. */
export const claimBackup = (tx: Transaction<Tables>, { sizeGibibytes, ...id }: BackupClaim): Promise<void> =>
  takeQuotas(tx, { accountId: id.accountId, holder: holderOf(id), amounts: backupQuota(sizeGibibytes) })

/** Does nothing when nothing is claimed. */
export const releaseBackup = (tx: Transaction<Tables>, id: BackupId): Promise<void> =>
  releaseQuotas(tx, { accountId: id.accountId, holder: holderOf(id) })

/** The sealed key of the account's backups: the stored one, or else the given one, which is then stored. */
export async function keepBackupKey(
  queries: Queries,
  {
    accountId,
    sealedKey,
    createdAt,
  }: { readonly accountId: string; readonly sealedKey: string; readonly createdAt: Date },
): Promise<string> {
  await queries
    .insertInto('backup_key')
    .values({ account_id: accountId, sealed_key: sealedKey, created_at: createdAt })
    .onConflict((conflict) => conflict.doNothing())
    .execute()
  const { sealed_key: storedKey } = await selectWhere(queries, 'backup_key', { account_id: accountId })
    .select('sealed_key')
    .executeTakeFirstOrThrow()
  return storedKey
}

/** Undefined when nothing of the account was ever backed up. */
export async function findBackupKey(queries: Queries, accountId: string): Promise<string | undefined> {
  const row = await selectWhere(queries, 'backup_key', { account_id: accountId })
    .select('sealed_key')
    .executeTakeFirst()
  return row?.sealed_key
}
