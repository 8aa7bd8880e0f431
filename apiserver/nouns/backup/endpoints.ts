/** Creating, reading, restoring, verifying and deleting backups. */
import { requireBackupZone } from '../../../changes/kit/backups.ts'
import { worldOf } from '../../../changes/kit/world.ts'
import { carriedBy } from '../../../resources/operation/index.ts'
import { isMachineId } from '../../../domain/managed-machine/rules.ts'
import { badField } from '../../../domain/problem.ts'
import { requireDeletable, requireRestorable, requireVerifiable } from '../../../domain/backup/rules.ts'
import { claimBackup, releaseBackup } from '../../../db/backup/index.ts'
import type { Answer, Call, Customer } from '../../../kit/http/call.ts'
import { customerEndpoint, type Endpoint } from '../../../kit/http/endpoint.ts'
import {
  Backup,
  type BackupSpec,
  createBackup,
  deleteBackup,
  getBackup,
  listBackups,
  restoreBackup,
  verifyBackup,
} from '../../../resources/backup/index.ts'
import { Zone } from '../../../resources/catalog/index.ts'
import { finalizerOf } from '../../../resources/kit/define.ts'
import { accountNamespace } from '../../../resources/index.ts'
import { Server } from '../../../resources/server/index.ts'
import { diskGibibytesOf, Storage } from '../../../resources/storage/index.ts'
import { create } from '../../kit/change/create.ts'
import { operate } from '../../kit/change/operate.ts'
import type { Parts } from '../../kit/parts.ts'
import { getObject, listObjects } from '../../kit/plain/objects.ts'
import type { Backups } from './objects.ts'
import { requireBackedUp, requireNoOther, requireReplaceable, requireUnreadBackup } from './rules.ts'

export type BackupParts = Parts & { readonly backups: Backups }

export function backupEndpoints(parts: BackupParts): readonly Endpoint[] {
  const { caches, backups } = parts
  caches.of(Storage)
  caches.of(Server)
  caches.of(Zone)
  return [
    getObject(backups, getBackup),
    listObjects(parts, backups, listBackups, ({ storage_id }) => ({ fields: { storage_id } })),
    customerEndpoint(createBackup, (call) => createEndpoint(parts, call)),
    customerEndpoint(deleteBackup, (call) =>
      operate(parts, backups, call, {
        kind: 'backup.delete',
        validate: requireDeletable,
        prepare: async ({ target }) => requireUnreadBackup(parts, target),
        spec: {},
      }),
    ),
    customerEndpoint(verifyBackup, (call) =>
      operate(parts, backups, call, { kind: 'backup.verify', validate: requireVerifiable, spec: {} }),
    ),
    customerEndpoint(restoreBackup, (call) => restore(parts, call)),
  ]
}

async function createEndpoint(parts: BackupParts, call: Call<typeof createBackup, Customer>): Promise<Answer> {
  const { store, backups } = parts
  const {
    caller: { accountId },
    params: { id: storageId },
    body: { title, expires_at: expiresAt },
    now,
  } = call
  const namespace = accountNamespace(accountId)
  const storage = requireBackedUp(
    isMachineId(storageId) ? undefined : await store.get(Storage, { namespace, name: storageId }),
  )
  const { zone } = storage.spec
  requireBackupZone(worldOf(parts.caches), zone)
  requireNoOther(backups, namespace, storageId)
  if (expiresAt != null && new Date(expiresAt) <= now) throw badField('expires_at', 'must be in the future')
  return create(parts, backups, call, {
    kind: 'storage.backup',
    finalizer: finalizerOf(Backup),
    auditedId: storageId,
    arguments: carriedBy('storage.backup', storageId),
    detail: (backupId) => ({ backup_id: backupId }),
    specOf: (operation): BackupSpec => ({
      storageId,
      zone,
      title,
      kind: 'manual',
      ...(expiresAt == null ? {} : { expiresAt: new Date(expiresAt).toISOString() }),
      operation,
    }),
    claim: (tx, backupId) => claimBackup(tx, { accountId, backupId, sizeGibibytes: diskGibibytesOf(storage) }),
    release: (tx, backupId) => releaseBackup(tx, { accountId, backupId }),
  })
}

const restore = (parts: BackupParts, call: Call<typeof restoreBackup, Customer>): Promise<Answer> =>
  operate(parts, parts.backups, call, {
    kind: 'backup.restore',
    validate: (backup) => requireRestorable(backup, call.body.force),
    prepare: async ({ target }) => requireReplaceable(parts, target),
    spec: {},
  })
