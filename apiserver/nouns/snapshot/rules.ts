/** Rules of snapshots about other resources, for every interface. */
import { requireStaying } from '../../../domain/snapshot/rules.ts'
import type { Caches } from '../../../kit/kube/caches.ts'
import type { KubeObject } from '../../../kit/kube/object.ts'
import { CustomImage, isReading } from '../../../resources/custom-image/index.ts'
import { factsOf, type ServerSpec, type ServerStatus } from '../../../resources/server/index.ts'
import { Storage, type StorageSpec, type StorageStatus } from '../../../resources/storage/index.ts'
import { storedOf } from '../../../resources/kit/shapes.ts'

export type StorageObject = KubeObject<StorageSpec, StorageStatus>

/** Throws 409 when the storage is a boot disk that a deletion or a rebuild of its server removes. */
export function requireStayingWith(
  server: KubeObject<ServerSpec, ServerStatus> | undefined,
  { metadata: { name }, spec: { isBoot } }: StorageObject,
): void {
  if (isBoot) requireStaying(name, server && { ...factsOf(storedOf(server)), bootStorageId: server.spec.bootStorageId })
}

/** Whether a storage or a custom image is being created from the snapshot. */
export const isCloned = (caches: Caches, namespace: string, snapshotId: string): boolean =>
  caches
    .of(Storage)
    .inNamespace(namespace)
    .some(
      ({ metadata, spec, status }) =>
        spec.source?.kind === 'snapshot' &&
        spec.source.id === snapshotId &&
        metadata.deletionTimestamp === undefined &&
        (status?.state ?? 'creating') === 'creating',
    ) ||
  caches
    .of(CustomImage)
    .inNamespace(namespace)
    .some((image) => isReading(image, { snapshotId }))
