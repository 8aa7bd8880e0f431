/** The key that seals the backups of an account, and the Secrets by which hosts have it. */
import { unavailable } from '../domain/problem.ts'
import { backupKeyOwner, keepBackupKey } from '../db/backup/index.ts'
import type { Key } from '../kit/kube/object.ts'
import type { Sealing } from '../kit/sys/sealing.ts'
import { BACKUP_KEY } from '../resources/backup-job/index.ts'
import { nodeNamespace } from '../resources/instance/index.ts'
import { orUnavailable } from './database.ts'
import type { Parts } from './parts.ts'
import { writeSecret } from './shared-key.ts'

export interface BackupAccess {
  /** Opens the keys of accounts; there are no backups without. */
  readonly sealing?: Sealing
}

const KEY_BYTES = 32

/** Of the Secret by which the agent of the node has the key. */
export const backupKeyKey = (accountId: string, node: string): Key => ({
  namespace: nodeNamespace(node),
  name: `backup-key-${accountId}`,
})

/** Puts the account's key, which is made at the first use, into the Secret. Throws 503 without sealing keys. */
export async function shareBackupKey(
  parts: Parts & BackupAccess,
  { accountId, secret }: { readonly accountId: string; readonly secret: Key },
): Promise<void> {
  const key = await accountKey(parts, accountId)
  await writeSecret(parts, secret, { [BACKUP_KEY]: Buffer.from(key).toString('base64') })
}

/** 64 hexadecimal digits. */
async function accountKey({ db, random, clock, sealing }: Parts & BackupAccess, accountId: string): Promise<string> {
  if (sealing?.isAvailable !== true)
    throw unavailable('not_configured', 'Backups need sealing keys, which this deployment does not have.')
  const sealedKey = sealing.seal(random.bytes(KEY_BYTES).toString('hex'), backupKeyOwner(accountId))
  const kept = await orUnavailable(keepBackupKey(db, { accountId, sealedKey, createdAt: clock.now() }))
  return sealing.open(kept, backupKeyOwner(accountId))
}
