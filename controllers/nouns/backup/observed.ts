/** What the backup controller observes before it decides. */
import type { KubernetesRequest } from '../../../db/request/index.ts'
import type { KubeObject } from '../../../kit/kube/object.ts'
import type { BackupSpec, BackupStatus } from '../../../resources/backup/index.ts'
import type { SnapshotSpec, SnapshotStatus } from '../../../resources/snapshot/index.ts'
import type { BackupJobSpec, BackupJobStatus } from '../../../resources/backup-job/index.ts'

export type BackupObject = KubeObject<BackupSpec, BackupStatus>
type SnapshotObject = KubeObject<SnapshotSpec, SnapshotStatus>
export type JobObject = KubeObject<BackupJobSpec, BackupJobStatus>

export interface Observed {
  /** Undefined when the namespace is no account's. */
  readonly accountId: string | undefined
  /** Zone of the storage, and of the backup from then on. */
  readonly zone: string | undefined
  readonly region: string | undefined
  readonly hasStorage: boolean
  /** Size of its disk, in GiB; undefined while neither the storage nor the original of a copy is known. */
  readonly sizeGibibytes?: number | undefined
  /** The storage is in another zone, whose hosts do not reach the store of the backup's zone. */
  readonly hasLeftZone: boolean
  /** Id of the restore that the storage records. */
  readonly notedRestore?: string | undefined
  /** The snapshot of the disk from before the restore that is under way; undefined while there is none. */
  readonly safety?: SnapshotObject | undefined
  /** The content of the disk is worth keeping, and can be kept. */
  readonly isKeepable?: boolean
  /** The zone that the backup must be copied to; undefined when none, and for copies. */
  readonly copyZone?: string | undefined
  /** Its copy there; undefined while there is none. */
  readonly copy?: BackupObject | undefined
  /** For a copy: the backup that it is created from; undefined when that no longer exists. */
  readonly original?: BackupObject | undefined
  /** For a copy: a host of its zone that reaches the store of the original. */
  readonly copyingHost?: string | undefined
  /** Storages that are being created from it. */
  readonly readers?: readonly string[]
  /** Whether a new backup of the host is written to the object storage of the zone. */
  readonly isObjectStorageUsed?: (host: string) => boolean
  /** Whether the object storage of the zone has the account's place; true for all when absent. */
  readonly isPlaceOpen?: (zone: string) => boolean
  /** Its disk, where it is ready on a host of the zone that has a place for backups. */
  readonly disk:
    | { readonly volume: string; readonly node: string; readonly origin?: BackupStatus['origin'] }
    | undefined
  /** Its guest is off, so that the disk may be replaced. */
  readonly isDiskFree: boolean
  /** A host of the zone that has a place for backups; the host of the disk when there is one. */
  readonly host: string | undefined
  /** Jobs of this backup, on any host. */
  readonly jobs: readonly JobObject[]
  /** The other complete backups of the storage in the zone, newest first. */
  readonly siblings: readonly BackupObject[]
  /** The other complete backups of the account in the zone. */
  readonly complete: readonly BackupObject[]
  /** Edits that start no operation. */
  readonly edits?: readonly KubernetesRequest[]
  /** The actor of the edit that has no operation. */
  readonly editor: string
}
