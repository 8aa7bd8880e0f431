/** A storage as whatever keeps it names it: its snapshots, and copies of it. */
import type { Hold } from '../../db/storage-hold/index.ts'
import type { KubeObject } from '../../kit/kube/object.ts'
import type { StorageSpec, StorageStatus } from '../../resources/storage/index.ts'

export type StorageObject = KubeObject<StorageSpec, StorageStatus>

export const heldOf = ({
  metadata: { name },
  spec,
  status,
}: StorageObject): Pick<Hold, 'storageId' | 'bootServerId' | 'isShared'> => ({
  storageId: name,
  bootServerId: spec.isBoot ? spec.serverId : undefined,
  isShared: status?.pool !== undefined,
})
