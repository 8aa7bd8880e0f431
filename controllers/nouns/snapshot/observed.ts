/** What the snapshot controller knows of the world when it decides. */
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
  /** It could not be taken, and keeps the storage all the same. */
  readonly holdsForNothing?: boolean
  readonly region: string | undefined
  /** Of the storage, on whatever node. */
  readonly volumes: readonly KubeObject<VolumeSpec, VolumeStatus>[]
  /** A backup of the storage that is being made: nobody else changes the disk while it is read. */
  readonly runningBackup?: string | undefined
  /** Storages are being made from it. */
  readonly isCloned: boolean
  /** Who made the edit that no operation stands for, as an actor. */
  readonly editor: string
}
