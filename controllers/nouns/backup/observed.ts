/** What the backup controller knows of the world when it decides. */
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
  /** Of its disk, in GiB; undefined while neither the storage nor what it is a copy of is known. */
  readonly sizeGibibytes?: number | undefined
  /** The storage lies in another zone, whose hosts do not reach the store of the backup's. */
  readonly hasLeftZone: boolean
  /** Id of the restore that the storage notes. */
  readonly notedRestore?: string | undefined
  /** The snapshot that keeps what the disk held before the restore that is under way; undefined while there is none. */
  readonly safety?: SnapshotObject | undefined
  /** What the disk holds is worth keeping, and can be kept. */
  readonly isKeepable?: boolean
  /** The zone that it shall be copied to; undefined when none, and of copies. */
  readonly copyZone?: string | undefined
  /** Its copy there; undefined while there is none. */
  readonly copy?: BackupObject | undefined
  /** Of a copy: what it is a copy of, and is being made from; undefined when that is gone. */
  readonly original?: BackupObject | undefined
  /** Of a copy: a host of its zone that reaches the store of the original. */
  readonly copyingHost?: string | undefined
  /** Storages that are being made from it. */
  readonly readers?: readonly string[]
  /** Whether a new backup of the host goes into the object storage of the zone. */
  readonly isObjectStorageUsed?: (host: string) => boolean
  /** Whether the object storage of the zone knows the account's place there; all do when absent. */
  readonly isPlaceOpen?: (zone: string) => boolean
  /** Its disk, where it is ready on a host of the zone that has a place for backups. */
  readonly disk:
    | { readonly volume: string; readonly node: string; readonly origin?: BackupStatus['origin'] }
    | undefined
  /** Its guest is off, so that the disk may be replaced. */
  readonly isDiskFree: boolean
  /** A host of the zone that has a place for backups; that of the disk when it has one. */
  readonly host: string | undefined
  /** Of this backup, on whatever host. */
  readonly jobs: readonly JobObject[]
  /** The complete backups of the storage in the zone but this one, newest first. */
  readonly siblings: readonly BackupObject[]
  /** The complete backups of the account in the zone but this one. */
  readonly complete: readonly BackupObject[]
  /** Who made the edit that no operation stands for, as an actor. */
  readonly editor: string
}
