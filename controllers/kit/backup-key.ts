/** The key that seals the backups of an account, and the Secrets that pass it to hosts. */
import { unavailable } from '../../domain/problem.ts'
import { backupKeyOwner, keepBackupKey } from '../../db/backup/index.ts'
import type { Key } from '../../kit/kube/object.ts'
import type { Sealing } from '../../kit/sys/sealing.ts'
import { BACKUP_KEY, BACKUP_PLACE, type BackupPlace, backupPlaceSecret } from '../../resources/backup-job/index.ts'
import { nodeNamespace } from '../../resources/instance/index.ts'
import { orUnavailable } from './outage.ts'
import { openInternalTenant } from './internal-tenant.ts'
import type { Parts } from './parts.ts'
import { writeSecret } from './shared-key.ts'

export interface BackupAccess {
  /** Opens the keys of accounts; without it there are no backups. */
  readonly sealing?: Sealing
}

const KEY_BYTES = 32

/** The Secret that gives the key to the agent of the node. */
export const backupKeyKey = (accountId: string, node: string): Key => ({
  namespace: nodeNamespace(node),
  name: `backup-key-${accountId}`,
})

export interface SharedBackups {
  readonly accountId: string
  /** The Secret of the host. */
  readonly secret: Key
  /** Zones whose object storage holds what the host reads or writes. */
  readonly objectStorageZones?: readonly string[]
}

/** Writes the account's key, which is created at the first use, into the Secret, and the credentials for the account's
 *  places in object storage into other Secrets beside it. Throws 503 without sealing keys, and Unavailable. */
export async function shareBackupKey(
  parts: Parts & BackupAccess,
  { accountId, secret, objectStorageZones = [] }: SharedBackups,
): Promise<void> {
  const key = await accountKey(parts, accountId)
  await writeSecret(parts, secret, { [BACKUP_KEY]: Buffer.from(key).toString('base64') })
  for (const zone of objectStorageZones) {
    const place = JSON.stringify(await placeOf(parts, accountId, zone))
    const beside = { namespace: secret.namespace ?? '', name: backupPlaceSecret(accountId, zone) }
    await writeSecret(parts, beside, { [BACKUP_PLACE]: Buffer.from(place).toString('base64') })
  }
}

async function placeOf(parts: Parts & BackupAccess, owner: string, zone: string): Promise<BackupPlace> {
  const { store, bucket, ...keys } = await openInternalTenant(parts, { purpose: 'backups', owner, zone })
  return {
    url: `${store.endpointOf(zone)}/${bucket}`,
    authority: store.certificateAuthority,
    ...keys,
    backend: store.backend,
  }
}

/** 64 hexadecimal digits; created at the first use. Throws 503 without sealing keys, and Unavailable. */
export async function accountKey(
  { db, random, clock, sealing }: Pick<Parts, 'db' | 'random' | 'clock'> & BackupAccess,
  accountId: string,
): Promise<string> {
  if (sealing?.isAvailable !== true)
    throw unavailable('not_configured', 'Backups need sealing keys, which this deployment does not have.')
  const sealedKey = sealing.seal(random.bytes(KEY_BYTES).toString('hex'), backupKeyOwner(accountId))
  const row = await orUnavailable(keepBackupKey(db, { accountId, sealedKey, createdAt: clock.now() }))
  return sealing.open(row, backupKeyOwner(accountId))
}
