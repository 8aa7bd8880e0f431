/** Rules of backups about other resources, for every interface. */
import { requireStopped, requireUnread } from '../../../domain/backup/rules.ts'
import { conflict, notFound, operationInProgress } from '../../../domain/problem.ts'
import type { Caches } from '../../../kit/kube/caches.ts'
import type { KubeObject } from '../../../kit/kube/object.ts'
import { CustomImage, isReading } from '../../../resources/custom-image/index.ts'
import { activeOperationOf } from '../../../resources/operation/index.ts'
import { Server } from '../../../resources/server/index.ts'
import { Storage, type StorageSpec, type StorageStatus } from '../../../resources/storage/index.ts'
import type { BackupObject, Backups } from './objects.ts'

type Reading = { readonly caches: Caches }
export type StorageObject = KubeObject<StorageSpec, StorageStatus>

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

/** Throws 409 while a storage or a custom image is being created from the backup. */
export const requireUnreadBackup = ({ caches }: Reading, { metadata: { namespace = '', name } }: BackupObject): void =>
  requireUnread({ id: name }, [
    ...caches
      .of(Storage)
      .inNamespace(namespace)
      .filter(({ spec: { source }, status }) => source?.kind === 'backup' && source.id === name && isNew(status))
      .map(({ metadata }) => `storage ${metadata.name}`),
    ...caches
      .of(CustomImage)
      .inNamespace(namespace)
      .filter((image) => isReading(image, { backupId: name }))
      .map(({ metadata }) => `custom image ${metadata.name}`),
  ])
const isNew = (status: StorageStatus | undefined): boolean => status === undefined || status.state === 'creating'

/** Throws 404 when the storage is deleted, and 409 unless it is in the zone of the backup and its server is stopped. A
 *  storage that a failed restore left incomplete can be restored again. */
export function requireReplaceable(
  { caches }: Reading,
  { metadata: { namespace = '' }, spec, status }: BackupObject,
): void {
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
