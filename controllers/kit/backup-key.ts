/** The key that seals the backups of an account, and the Secrets by which hosts have it. */
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
  /** Opens the keys of accounts; there are no backups without. */
  readonly sealing?: Sealing
}

const KEY_BYTES = 32

/** Of the Secret by which the agent of the node has the key. */
export const backupKeyKey = (accountId: string, node: string): Key => ({
  namespace: nodeNamespace(node),
  name: `backup-key-${accountId}`,
})

export interface SharedBackups {
  readonly accountId: string
  /** Of the host. */
  readonly secret: Key
  /** Whose object storage holds what the host reads or writes. */
  readonly objectStorageZones?: readonly string[]
}

/** Puts the account's key, which is made at the first use, into the Secret, and what opens its places in object storage
 *  into others beside it. Throws 503 without sealing keys, and Unavailable. */
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

/** 64 hexadecimal digits; made at the first use. Throws 503 without sealing keys, and Unavailable. */
export async function accountKey(
  { db, random, clock, sealing }: Pick<Parts, 'db' | 'random' | 'clock'> & BackupAccess,
  accountId: string,
): Promise<string> {
  if (sealing?.isAvailable !== true)
    throw unavailable('not_configured', 'Backups need sealing keys, which this deployment does not have.')
  const sealedKey = sealing.seal(random.bytes(KEY_BYTES).toString('hex'), backupKeyOwner(accountId))
  const kept = await orUnavailable(keepBackupKey(db, { accountId, sealedKey, createdAt: clock.now() }))
  return sealing.open(kept, backupKeyOwner(accountId))
}
