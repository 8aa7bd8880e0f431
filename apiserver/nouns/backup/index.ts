/** Backups: their changes are in `changes/backup.ts`. */
import { type BackupFacts, requireRestorable, requireStopped, requireVerifiable } from '../../../domain/backup/rules.ts'
import type { KubeObject } from '../../../kit/kube/object.ts'
import {
  Backup,
  type BackupSpec,
  type BackupStatus,
  type BackupSurroundings,
  type BackupView,
  backupFactsOf,
  createBackup,
  getBackup,
  listBackups,
  restoreBackup,
  toBackupView,
  verifyBackup,
} from '../../../resources/backup/index.ts'
import { Zone } from '../../../resources/catalog/index.ts'
import { type OperatedObjects, openOperated, operate } from '../../kit/change/operate.ts'
import { type ObjectParts, getObject, listObjects } from '../../kit/plain/objects.ts'
import { backupChanges } from '../../../changes/backup.ts'
import { isMachineId } from '../../../domain/managed-machine/rules.ts'
import type { Answer, Call, Customer } from '../../../kit/http/call.ts'
import { type Endpoint, customerEndpoint } from '../../../kit/http/endpoint.ts'
import { accountNamespace } from '../../../resources/index.ts'
import { Storage, type StorageSpec, type StorageStatus } from '../../../resources/storage/index.ts'
import { admissionOf } from '../../kit/admission/changes.ts'
import { kind } from '../../kit/admission/kind.ts'
import { makerOf } from '../../kit/create.ts'
import { objectFeed, zonesOf } from '../../kit/feed.ts'
import { noun } from '../../kit/noun.ts'
import type { Parts } from '../../kit/parts.ts'
import { changeEndpoints } from '../../kit/rest.ts'
import { conflict, notFound, operationInProgress } from '../../../domain/problem.ts'
import type { Caches } from '../../../kit/kube/caches.ts'
import { activeOperationOf } from '../../../resources/operation/index.ts'
import { Server } from '../../../resources/server/index.ts'

type BackupObject = KubeObject<BackupSpec, BackupStatus>
export type Backups = OperatedObjects<BackupSpec, BackupStatus, BackupView, BackupFacts>

function openBackups(parts: ObjectParts): Backups {
  const zones = parts.caches.of(Zone)
  return openOperated(parts, {
    name: 'backup',
    title: 'backup',
    resource: Backup,
    surroundingsOf: ({ spec, status }: BackupObject): BackupSurroundings => ({
      region: zones.get({ name: status?.zone ?? spec.zone ?? '' })?.spec.region,
    }),
    toView: toBackupView,
    factsOf: backupFactsOf,
    fields: { storage_id: ({ storageId }) => storageId },
  })
}

type BackupParts = Parts & { readonly backups: Backups }

type StorageObject = KubeObject<StorageSpec, StorageStatus>

/** The storage of a new backup. Throws 404 when it is not the account's or is being deleted, and 409 unless it is
 *  online. */
function requireBackedUp(storage: StorageObject | undefined): StorageObject {
  if (storage === undefined || storage.metadata.deletionTimestamp !== undefined) throw notFound('storage')
  if (storage.status?.state !== 'online')
    throw conflict('state_not_allowed', `The storage is in state ${storage.status?.state ?? 'creating'}.`, {
      resource: { type: 'storage', id: storage.metadata.name },
    })
  return storage
}

/** Throws 409 while another backup of the storage is being created. */
function requireNoOther(backups: Backups, namespace: string, storageId: string): void {
  const other = backups.cache
    .inNamespace(namespace)
    .find(
      ({ spec, status }) =>
        spec.storageId === storageId && activeOperationOf({ spec, status })?.kind === 'storage.backup',
    )
  const operation = other === undefined ? undefined : activeOperationOf(other)
  if (operation !== undefined) throw operationInProgress(operation.id, { type: 'storage', id: storageId })
}

/** Throws 404 when the storage is deleted, and 409 unless it is in the zone of the backup and its server is stopped. A
 *  storage that a failed restore left incomplete can be restored again. */
function requireReplaceable(caches: Caches, { metadata: { namespace = '' }, spec, status }: BackupObject): void {
  const found = caches.of(Storage).get({ namespace, name: spec.storageId })
  const isBroken = found?.status?.state === 'error' && found.status.restore !== undefined
  const storage = isBroken && found.metadata.deletionTimestamp === undefined ? found : requireBackedUp(found)
  const operation = activeOperationOf(storage)
  if (operation !== undefined) throw operationInProgress(operation.id, { type: 'storage', id: storage.metadata.name })
  const { serverId, zone } = storage.spec
  if (status?.zone !== zone)
    throw conflict(
      'state_not_allowed',
      `The storage is in zone ${zone} now, and the backup in zone ${status?.zone ?? ''}. Make a new storage from it.`,
      { resource: { type: 'storage', id: storage.metadata.name } },
    )
  const server = serverId === undefined ? undefined : caches.of(Server).get({ namespace, name: serverId })
  requireStopped(
    server && {
      id: server.metadata.name,
      isStopped: server.status?.state === 'stopped' && server.spec.desiredPower === 'stopped',
    },
  )
}

const restoreEndpoint = ({ caches, ...parts }: Parts, backups: Backups): Endpoint => {
  caches.of(Storage)
  caches.of(Server)
  return customerEndpoint(restoreBackup, (call) =>
    operate({ caches, ...parts }, backups, call, {
      kind: 'backup.restore',
      validate: (backup) => requireRestorable(backup, call.body.force),
      prepare: async ({ target }) => requireReplaceable(caches, target),
      spec: {},
    }),
  )
}

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
  feeds: ({ backups, caches }) => [objectFeed('backup', listBackups, backups, [zonesOf(caches)])],
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
  parts.caches.of(Storage).apply(storage)
  const expiry = expiresAt == null ? {} : { expiresAt: new Date(expiresAt).toISOString() }
  const spec = { storageId, zone: storage.spec.zone, title, kind: 'manual', ...expiry } as const
  return makerOf(parts, backupChanges, backups)(call, spec, { storage })
}
