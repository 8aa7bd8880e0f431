/** What the storage controller knows of the world when it decides. */
import type { KubernetesRequest } from '../../../db/request/index.ts'
import type { StorageClaim } from '../../../db/storage/index.ts'
import type { VolumeSpec } from '../../../resources/instance/index.ts'
import type { KubeObject } from '../../../kit/kube/object.ts'
import type { MigrationProgress, ServerSpec, ServerStatus } from '../../../resources/server/index.ts'
import type { RestoreObserved } from './restore.ts'
import type { Point } from './snapshots.ts'
import type { StorageObject, VolumeObject } from './volumes.ts'

/** What a storage is made from, while it is made. */
export interface Origin {
  readonly storage: StorageObject
  readonly volumes: readonly VolumeObject[]
  /** As the snapshot is named in the disk. */
  readonly point: string
  /** It can be read as soon as it is in the disk. */
  readonly isReady: boolean
  /** It is on its way out. */
  readonly isLost: boolean
}

export interface Observed {
  /** Undefined when the namespace is no account's. */
  readonly accountId?: string | undefined
  /** What it holds in PostgreSQL; undefined for boot storages, and while it holds nothing. */
  readonly claim?: StorageClaim | undefined
  /** For how many GiB quota and room are held. */
  readonly heldGibibytes?: number | undefined
  /** Where its server lives; undefined when it has none, or that has no room on any node. */
  readonly serverNode?: string | undefined
  /** The server that its spec names does not exist, or is on its way out. */
  readonly isServerGone?: boolean
  /** Undefined when it has none, or the cache does not know it. */
  readonly server?: KubeObject<ServerSpec, ServerStatus> | undefined
  /** Nodes that a move must not bring it to: they do not reach the shared storage that it shall lie on. */
  readonly unfitNodes?: readonly string[]
  readonly isServerDeletedWithStorages?: boolean
  /** Whether the guest of its server has the disk, or may have it at the next start. */
  readonly guest?: 'has' | 'has_not' | 'unknown'
  /** Who made the edit that no operation stands for, as an actor. */
  readonly editor?: string
  /** What people asked the Kubernetes API for since the last reconcile. */
  readonly requests?: readonly KubernetesRequest[]
  /** Where its data are or shall be made; undefined when there is no room on any node. */
  readonly node: string | undefined
  /** Of that node. */
  readonly zone?: string | undefined
  /** Where it is brought, with its server or to it. */
  readonly target?:
    | { readonly node: string; readonly zone: string; readonly operationId: string; readonly pools: readonly string[] }
    | undefined
  /** How far that is. */
  readonly migration?: Pick<MigrationProgress, 'operationId' | 'state'> | undefined
  /** Secret of both nodes that the copy shares. */
  readonly moveSecretName?: string | undefined
  readonly region: string | undefined
  readonly restore?: RestoreObserved
  /** A backup of it is being made. */
  readonly isBackingUp?: boolean
  /** Of a storage that is made from a backup: whether all of that is there. */
  readonly isBackupOnline?: boolean
  /** Zone whose object storage holds that backup; undefined when a host's own place does. */
  readonly backupObjectStorageZone?: string | undefined
  /** All of this storage, on whatever node. */
  readonly volumes: readonly VolumeObject[]
  /** Nodes where an instance has the disk. */
  readonly usedOn: readonly string[]
  /** Of the nodes that hold it: those that are proven to run nothing any more, or are given up with the server. */
  readonly lostNodes?: readonly string[]
  /** The boots of those of which nothing runs any more. */
  readonly lostBoots?: NonNullable<VolumeSpec['takesOverFrom']>
  /** Its server is released by force, with whatever is left of it. */
  readonly isReleased?: boolean
  /** One that is not lost and reaches the shared storage that it lies on. */
  readonly successorNode?: string | undefined
  /** The node has no guest with the disk, and shall have none. */
  readonly isGuestOff: boolean
  /** The Image of the nodes that it is to be made from; undefined when that does not exist any more, and for a template
   *  that nodes build. */
  readonly image?: string | undefined
  /** Shared storage of the node. */
  readonly pools: readonly string[]
  /** The server stays, or its guest still has the disk. */
  readonly isInUse: boolean
  /** Its snapshots, and copies that are made of it. */
  readonly points?: readonly Point[]
  /** Snapshots in its disk that nobody knows. */
  readonly strays?: readonly string[]
  /** It has snapshots, or is copied: it is not deleted. */
  readonly isHeld?: boolean
  /** The same, or it has snapshots that go with it: its data are not copied elsewhere. */
  readonly isHeldInPlace?: boolean
  /** As before, on the disks of one host: the storage stays there. */
  readonly isHeldOnHost?: boolean
  /** What it is made from; undefined when that is gone. */
  readonly origin?: Origin | undefined
  /** It keeps the storage that it is made a copy of. */
  readonly holdsSource?: boolean
}
