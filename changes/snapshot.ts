/** The changes of a snapshot: it is created, described and deleted; what it keeps cannot be changed. */
import { requireDeletableSnapshot, requireSnapshotTier, requireStaying } from '../domain/snapshot/rules.ts'
import { claimSnapshot, releaseSnapshot } from '../db/snapshot/index.ts'
import type { KubeObject } from '../kit/kube/object.ts'
import { CustomImage, isReading } from '../resources/custom-image/index.ts'
import { accountNamespace } from '../resources/index.ts'
import { Labels, Printable, storedOf } from '../resources/kit/shapes.ts'
import { factsOf, Server, type ServerSpec, type ServerStatus } from '../resources/server/index.ts'
import * as routes from '../resources/snapshot/index.ts'
import { Snapshot, type SnapshotSpec, snapshotFactsOf } from '../resources/snapshot/index.ts'
import { diskGibibytesOf, Storage } from '../resources/storage/index.ts'
import { changesOf, fromBody, type Patch, type Target } from './kit/define.ts'
import { requireReadable } from './kit/readable.ts'
import { heldOf, type StorageObject } from './kit/source.ts'
import { type World, worldOf } from './kit/world.ts'

const snapshotOf = ({ accountId, id }: Target) => ({ accountId, snapshotId: id })

/** The storage to take it of. One that kubectl names may be created later, and is waited for until it is online. */
function onlineStorage(world: World, { accountId }: Target, { storageId }: SnapshotSpec): StorageObject | undefined {
  const storage = world.find(Storage, { namespace: accountNamespace(accountId), name: storageId })
  return storage?.status?.state === 'online' ? storage : undefined
}

/** Throws 409 when the storage is a boot disk that a deletion or a rebuild of its server removes. */
export function requireStayingWith(
  server: KubeObject<ServerSpec, ServerStatus> | undefined,
  { metadata: { name }, spec: { isBoot } }: StorageObject,
): void {
  if (isBoot) requireStaying(name, server && { ...factsOf(storedOf(server)), bootStorageId: server.spec.bootStorageId })
}

/** Whether a storage or a custom image is being created from the snapshot. */
function isCloned(world: World, { accountId, id }: Target): boolean {
  const namespace = accountNamespace(accountId)
  const isCloning = ({ metadata, spec: { source }, status }: StorageObject) =>
    source?.kind === 'snapshot' &&
    source.id === id &&
    metadata.deletionTimestamp === undefined &&
    (status?.state ?? 'creating') === 'creating'
  return (
    [...world.list(Storage, namespace)].some(isCloning) ||
    [...world.list(CustomImage, namespace)].some((image) => isReading(image, { snapshotId: id }))
  )
}

export const snapshotChanges = changesOf(Snapshot, {
  name: 'snapshot',
  title: 'snapshot',
  finalizedWhen: 'nothing of the snapshot is left in the disk of its storage',
  factsOf: snapshotFactsOf,
  platform: ['restoredBackupId', 'expiresAt'],
  reads: [Server, Storage, CustomImage],
  readable({ title, labels }) {
    requireReadable('title', Printable, title)
    requireReadable('labels', Labels.optional(), labels)
  },
  create: {
    name: 'create',
    operation: 'snapshot.create',
    needs: 'standing',
    allow({ spec, ...target }, world) {
      const storage = onlineStorage(world, target, spec)
      if (storage === undefined) return
      const { namespace = '' } = storage.metadata
      requireSnapshotTier(storage.spec.tier)
      requireStayingWith(world.find(Server, { namespace, name: storage.spec.serverId ?? '' }), storage)
    },
    async claim(tx, { spec, ...target }, { caches, storage = onlineStorage(worldOf(caches), target, spec) }) {
      if (storage === undefined) return
      const sizeGibibytes = diskGibibytesOf(storage)
      await claimSnapshot(tx, { ...snapshotOf(target), sizeGibibytes, ...heldOf(storage) })
    },
    release: (tx, target) => releaseSnapshot(tx, snapshotOf(target)),
    detail: ({ storageId }) => ({ storage_id: storageId }),
    by: { route: routes.createSnapshot },
  },
  changes: {
    describe: {
      sets: ['title', 'labels'],
      action: 'update',
      by: fromBody(
        routes.updateSnapshot,
        ({ title, labels }, spec: SnapshotSpec): Patch<SnapshotSpec> => ({
          title: title ?? spec.title,
          labels: labels ?? spec.labels,
        }),
      ),
    },
  },
  remove: {
    name: 'delete',
    operation: 'snapshot.delete',
    allow: ({ facts, ...target }, world) => requireDeletableSnapshot(facts, isCloned(world, target)),
    by: { route: routes.deleteSnapshot },
  },
})
