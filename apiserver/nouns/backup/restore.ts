/** Restoring a backup, and what that and a creation ask of its storage. */
import { requireRestorable, requireStopped } from '../../../domain/backup/rules.ts'
import { conflict, notFound, operationInProgress } from '../../../domain/problem.ts'
import { customerEndpoint, type Endpoint } from '../../../kit/http/endpoint.ts'
import type { Caches } from '../../../kit/kube/caches.ts'
import { restoreBackup } from '../../../resources/backup/index.ts'
import type { KubeObject } from '../../../kit/kube/object.ts'
import { activeOperationOf } from '../../../resources/operation/index.ts'
import { Server } from '../../../resources/server/index.ts'
import { Storage, type StorageSpec, type StorageStatus } from '../../../resources/storage/index.ts'
import { operate } from '../../kit/change/operate.ts'
import type { Parts } from '../../kit/parts.ts'
import type { BackupObject, Backups } from './objects.ts'

type StorageObject = KubeObject<StorageSpec, StorageStatus>

/** The storage of a new backup. Throws 404 when it is not the account's or is being deleted, and 409 unless it is
 *  online. */
export function requireBackedUp(storage: StorageObject | undefined): StorageObject {
  if (storage === undefined || storage.metadata.deletionTimestamp !== undefined) throw notFound('storage')
  if (storage.status?.state !== 'online')
    throw conflict('state_not_allowed', `The storage is in state ${storage.status?.state ?? 'creating'}.`, {
      resource: { type: 'storage', id: storage.metadata.name },
    })
  return storage
}

/** Throws 409 while another backup of the storage is being created. */
export function requireNoOther(backups: Backups, namespace: string, storageId: string): void {
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

export const restoreEndpoint = ({ caches, ...parts }: Parts, backups: Backups): Endpoint => {
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
