/** What the storage controller observes before it decides. */
import type { KubernetesRequest } from '../../../db/request/index.ts'
import type { StorageClaim } from '../../../db/storage/index.ts'
import type { VolumeSpec } from '../../../resources/instance/index.ts'
import type { KubeObject } from '../../../kit/kube/object.ts'
import type { MigrationProgress, ServerSpec, ServerStatus } from '../../../resources/server/index.ts'
import type { RestoreObserved } from './restore.ts'
import type { Point } from './snapshots.ts'
import type { StorageObject, VolumeObject } from './volumes.ts'

/** The source of a storage, while it is created. */
export interface Origin {
  readonly storage: StorageObject
  readonly volumes: readonly VolumeObject[]
  /** The name of the snapshot in the disk. */
  readonly point: string
  /** It can be read as soon as it is in the disk. */
  readonly isReady: boolean
  /** It is being deleted, or in error. */
  readonly isLost: boolean
}

export interface Observed {
  /** Undefined when the namespace is no account's. */
  readonly accountId?: string | undefined
  /** Its claims in PostgreSQL; undefined for boot storages, and while nothing is claimed. */
  readonly claim?: StorageClaim | undefined
  /** The GiB of quota and room that are claimed. */
  readonly heldGibibytes?: number | undefined
  /** The node of its server; undefined when it has none, or that has no room on any node. */
  readonly serverNode?: string | undefined
  /** The server that its spec names does not exist. */
  readonly isServerGone?: boolean
  /** The deletion of that server was ordered. Without an order the server is lost, and its guest may have the disk. */
  readonly isServerRemovalOrdered?: boolean
  /** Undefined when it has none, or the cache does not know it. */
  readonly server?: KubeObject<ServerSpec, ServerStatus> | undefined
  /** Nodes that a move must not bring it to: they do not reach the shared storage that it must be on. */
  readonly unfitNodes?: readonly string[]
  readonly isServerDeletedWithStorages?: boolean
  /** Whether the guest of its server has the disk, or may have it at the next start. */
  readonly guest?: 'has' | 'has_not' | 'unknown'
  /** The actor of the edit that has no operation. */
  readonly editor?: string
  /** Requests by people to the Kubernetes API since the last reconcile. */
  readonly requests?: readonly KubernetesRequest[]
  /** Where its data is or will be created; undefined when there is no room on any node. */
  readonly node: string | undefined
  /** Zone of that node. */
  readonly zone?: string | undefined
  /** Where it moves, with its server or to it. */
  readonly target?:
    | { readonly node: string; readonly zone: string; readonly operationId: string; readonly pools: readonly string[] }
    | undefined
  /** The progress of that. */
  readonly migration?: Pick<MigrationProgress, 'operationId' | 'state'> | undefined
  /** The Secret that both nodes of the copy have. */
  readonly moveSecretName?: string | undefined
  readonly region: string | undefined
  readonly restore?: RestoreObserved
  /** A backup of it is being created. */
  readonly isBackingUp?: boolean
  /** For a storage that is created from a backup: whether the backup is complete. */
  readonly isBackupOnline?: boolean
  /** Zone whose object storage holds that backup; undefined when a host's own place does. */
  readonly backupObjectStorageZone?: string | undefined
  /** All volumes of this storage, on any node. */
  readonly volumes: readonly VolumeObject[]
  /** Nodes where an instance has the disk. */
  readonly usedOn: readonly string[]
  /** Among the nodes that have it: those on which it is proven that nothing runs, or that are given up with the
   *  server. */
  readonly lostNodes?: readonly string[]
  /** The boots of those nodes of which nothing runs any longer. */
  readonly lostBoots?: NonNullable<VolumeSpec['takesOverFrom']>
  /** Its server is released by force, with everything that is left of it. */
  readonly isReleased?: boolean
  /** A node that is not lost and reaches the shared storage that it is on. */
  readonly successorNode?: string | undefined
  /** The node has no guest with the disk, and must not get one. */
  readonly isGuestOff: boolean
  /** The Image on nodes that it is created from; undefined when that no longer exists, and for a template that nodes
   *  build. */
  readonly image?: string | undefined
  /** Shared storage of the node. */
  readonly pools: readonly string[]
  /** The server stays, or its guest still has the disk. */
  readonly isInUse: boolean
  /** Its snapshots, and the copies that are created from it. */
  readonly points?: readonly Point[]
  /** Snapshots in its disk that belong to nothing. */
  readonly strays?: readonly string[]
  /** It has snapshots, or is being copied: it must not be deleted. */
  readonly isHeld?: boolean
  /** The same, or it has snapshots that are deleted with it: its data must not be copied elsewhere. */
  readonly isHeldInPlace?: boolean
  /** The same, on the disks of one host: the storage must stay there. */
  readonly isHeldOnHost?: boolean
  /** What it is created from; undefined when that no longer exists. */
  readonly origin?: Origin | undefined
  /** It still holds the storage that it is a copy of. */
  readonly holdsSource?: boolean
}
