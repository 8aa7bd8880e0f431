/** What the snapshot controller observes before it decides. */
import type { KubeObject } from '../../../kit/kube/object.ts'
import type { VolumeSpec, VolumeStatus } from '../../../resources/instance/index.ts'
import type { SnapshotSpec, SnapshotStatus } from '../../../resources/snapshot/index.ts'
import type { StorageSpec, StorageStatus } from '../../../resources/storage/index.ts'

export type SnapshotObject = KubeObject<SnapshotSpec, SnapshotStatus>

export interface Observed {
  /** Undefined when the namespace is no account's. */
  readonly accountId: string | undefined
  readonly storage: KubeObject<StorageSpec, StorageStatus> | undefined
  /** The server that boots from it is being deleted. */
  readonly isServerLeaving?: boolean
  /** It could not be taken, but still holds the storage. */
  readonly holdsForNothing?: boolean
  readonly region: string | undefined
  /** Volumes of the storage, on any node. */
  readonly volumes: readonly KubeObject<VolumeSpec, VolumeStatus>[]
  /** A backup of the storage that is being created: nothing else changes the disk while it is read. */
  readonly runningBackup?: string | undefined
  /** Storages are being created from it. */
  readonly isCloned: boolean
  /** The actor of the edit that has no operation. */
  readonly editor: string
}
