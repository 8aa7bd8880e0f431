/** Backups: their changes are in `changes/backup.ts`. */
import { backupChanges } from '../../../changes/backup.ts'
import { requireVerifiable } from '../../../domain/backup/rules.ts'
import { isMachineId } from '../../../domain/managed-machine/rules.ts'
import type { Answer, Call, Customer } from '../../../kit/http/call.ts'
import { customerEndpoint } from '../../../kit/http/endpoint.ts'
import { Backup, createBackup, getBackup, listBackups, verifyBackup } from '../../../resources/backup/index.ts'
import { accountNamespace } from '../../../resources/index.ts'
import { Storage } from '../../../resources/storage/index.ts'
import { admissionOf } from '../../kit/admission/changes.ts'
import { kind } from '../../kit/admission/kind.ts'
import { operate } from '../../kit/change/operate.ts'
import { makerOf } from '../../kit/create.ts'
import { noun } from '../../kit/noun.ts'
import type { Parts } from '../../kit/parts.ts'
import { getObject, listObjects } from '../../kit/plain/objects.ts'
import { changeEndpoints } from '../../kit/rest.ts'
import { type Backups, openBackups } from './objects.ts'
import { requireBackedUp, requireNoOther, restoreEndpoint } from './restore.ts'

export type { Backups }
type BackupParts = Parts & { readonly backups: Backups }

export const backup = noun<BackupParts, { readonly backups: Backups }>({
  name: 'backup',
  kinds: [kind(Backup, { access: 'write', target: 'backup', admission: admissionOf(backupChanges) })],
  open: (parts) => ({ backups: openBackups(parts) }),
  endpoints: ({ backups, ...parts }) => [
    getObject(backups, getBackup),
    listObjects(parts, backups, listBackups, ({ storage_id }) => ({ fields: { storage_id } })),
    customerEndpoint(createBackup, (call) => create({ backups, ...parts }, call)),
    customerEndpoint(verifyBackup, (call) =>
      operate(parts, backups, call, { kind: 'backup.verify', validate: requireVerifiable, spec: {} }),
    ),
    restoreEndpoint(parts, backups),
    ...changeEndpoints(parts, backupChanges, backups),
  ],
})

async function create({ backups, ...parts }: BackupParts, call: Call<typeof createBackup, Customer>): Promise<Answer> {
  const {
    caller: { accountId },
    params: { id: storageId },
    body: { title, expires_at: expiresAt },
  } = call
  const namespace = accountNamespace(accountId)
  const storage = requireBackedUp(
    isMachineId(storageId) ? undefined : await parts.store.get(Storage, { namespace, name: storageId }),
  )
  requireNoOther(backups, namespace, storageId)
  // Its claim finds it there.
  parts.caches.of(Storage).apply(storage)
  const expiry = expiresAt == null ? {} : { expiresAt: new Date(expiresAt).toISOString() }
  const spec = { storageId, zone: storage.spec.zone, title, kind: 'manual', ...expiry } as const
  return makerOf(parts, backupChanges, backups)(call, spec)
}
