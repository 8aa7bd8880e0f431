/** Storages: their changes are in `changes/storage.ts`. */
import { defined } from '../../../domain/defined.ts'
import type { StorageFacts } from '../../../domain/storage/rules.ts'
import { isMachineId } from '../../../domain/managed-machine/rules.ts'
import type { KubeObject } from '../../../kit/kube/object.ts'
import { Zone, type ZoneSpec, type ZoneStatus } from '../../../resources/catalog/index.ts'
import { Backup, type BackupSpec, type BackupStatus } from '../../../resources/backup/index.ts'
import { activeOperationOf } from '../../../resources/operation/index.ts'
import { Snapshot } from '../../../resources/snapshot/index.ts'
import {
  Storage,
  type StorageSpec,
  type StorageStatus,
  type StorageSurroundings,
  type StorageView,
  getStorage,
  listStorages,
  storageFactsOf,
  toStorageView,
} from '../../../resources/storage/index.ts'
import { type OperatedObjects, openOperated } from '../../kit/change/operate.ts'
import { type ObjectParts, getObject, labelsOfQuery, listObjects } from '../../kit/plain/objects.ts'
import { storageChanges } from '../../../changes/storage.ts'
import { kind } from '../../kit/admission/kind.ts'
import { admissionOf } from '../../kit/admission/changes.ts'
import { changeEndpoints } from '../../kit/rest.ts'
import { besides, objectFeed, sourceOf, zonesOf } from '../../kit/feed.ts'
import { noun } from '../../kit/noun.ts'
import type { Parts } from '../../kit/parts.ts'

const BACKUPS_OF_STORAGE = 'backups of storage'
const SNAPSHOTS_OF_STORAGE = 'snapshots of storage'

type StorageObject = KubeObject<StorageSpec, StorageStatus>
export type Storages = OperatedObjects<StorageSpec, StorageStatus, StorageView, StorageFacts>

function openStorages(parts: ObjectParts): Storages {
  const zones = parts.caches.of(Zone)
  const snapshots = parts.caches.of(Snapshot)
  snapshots.addIndex(SNAPSHOTS_OF_STORAGE, ({ metadata, spec }) => [`${metadata.namespace}/${spec.storageId}`])
  const backups = parts.caches.of(Backup)
  backups.addIndex(BACKUPS_OF_STORAGE, ({ metadata, spec }) => [`${metadata.namespace}/${spec.storageId}`])
  return openOperated(parts, {
    name: 'storage',
    title: 'storage',
    resource: Storage,
    surroundingsOf: ({ metadata: { namespace, name }, spec }: StorageObject): StorageSurroundings => ({
      ...zoneOf(zones.get({ name: spec.zone })),
      backup: beingMade(backups.by(BACKUPS_OF_STORAGE, `${namespace}/${name}`)),
      snapshotCount: snapshots.by(SNAPSHOTS_OF_STORAGE, `${namespace}/${name}`).length,
    }),
    toView: toStorageView,
    factsOf: storageFactsOf,
    labelsOf: ({ labels }) => labels,
    isHidden: isMachineId,
    fields: { zone: ({ zone }) => zone, server_id: ({ serverId = '' }) => serverId },
  })
}

/** Of these. */
function beingMade(backups: readonly KubeObject<BackupSpec, BackupStatus>[]): StorageSurroundings['backup'] {
  for (const { metadata, spec, status } of backups) {
    const operation = activeOperationOf({ spec, status })
    if (operation?.kind === 'storage.backup') return { id: metadata.name, operation }
  }
  return undefined
}

const zoneOf = (zone: KubeObject<ZoneSpec, ZoneStatus> | undefined): Pick<StorageSurroundings, 'zone' | 'pools'> => ({
  zone: zone?.spec,
  ...defined({ pools: zone?.status?.sharedStorage?.pools }),
})

export const storage = noun<Parts & { readonly storages: Storages }, { readonly storages: Storages }>({
  name: 'storage',
  kinds: [
    kind(Storage, {
      access: 'write',
      target: 'storage',
      // A protected storage is kept, even when a garbage collector deletes it.
      admission: { ...admissionOf(storageChanges), validatesCleanUp: true },
    }),
  ],
  open: (parts) => ({ storages: openStorages(parts) }),
  endpoints: ({ storages, ...parts }) => [
    getObject(storages, getStorage),
    listObjects(parts, storages, listStorages, ({ zone, server_id, label }) => ({
      labels: labelsOfQuery(label),
      fields: { zone, server_id },
    })),
    ...changeEndpoints(parts, storageChanges, storages),
  ],
  feeds: ({ storages, caches }) => [
    objectFeed('storage', listStorages, storages, [
      sourceOf(
        caches.of(Snapshot),
        besides(({ spec }) => [spec.storageId]),
        { part: ({ spec }) => spec.storageId },
      ),
      sourceOf(
        caches.of(Backup),
        besides(({ spec }) => [spec.storageId]),
      ),
      zonesOf(caches, ({ spec, status }) => [spec, status?.sharedStorage?.pools]),
    ]),
  ],
})
