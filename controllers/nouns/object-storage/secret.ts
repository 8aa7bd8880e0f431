import { unavailable } from '../../../domain/problem.ts'
import { objectStorageOwner, type ObjectStorageRow } from '../../../db/object-storage/index.ts'
import type { BackupAccess } from '../../kit/backup-key.ts'

/** Throws 503 without sealing keys. */
export function openSecret({ sealing }: BackupAccess, row: ObjectStorageRow): string {
  if (sealing?.isAvailable !== true)
    throw unavailable('not_configured', 'Object storage needs sealing keys, which this deployment does not have.')
  return sealing.open(row.sealedSecret, objectStorageOwner(row.accountId, row.id))
}
