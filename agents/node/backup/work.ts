/** Backup work of a node. Two implementations: `disk-work.ts` for real disks, `simulated.ts`. */
import type { BackupJobSpec, BackupJobStatus } from '../../../resources/backup-job/index.ts'

type Report = 'bytesDone' | 'bytesTotal' | 'bytesSent'
export type WorkProgress = Pick<BackupJobStatus, Report>
/** Fields of the job's final status. */
export type WorkResult = Pick<
  BackupJobStatus,
  Report | 'sizeBytes' | 'parent' | 'fullBecause' | 'isFrozen' | 'damage' | 'target' | 'isSameHost'
>

export interface WorkOptions {
  readonly signal: AbortSignal
  readonly onProgress: (progress: WorkProgress) => void
}

/** A restore that failed after it had started to write. The disk holds neither its old data nor the backup. */
export class HalfWritten extends Error {
  constructor(cause: unknown) {
    super(cause instanceof Error ? cause.message : String(cause), { cause })
    this.name = 'HalfWritten'
  }
}

/** Source of a new disk's data. */
export interface BackupSource extends Pick<BackupJobSpec, 'accountId' | 'secretName' | 'objectStorageZone'> {
  readonly backup: string
}

export interface BackupWork {
  /** Does the work. May be repeated after an interruption at any point. Rejects when the work cannot be done now. */
  run(job: BackupJobSpec, options: WorkOptions): Promise<WorkResult>
  /** Removes what unfinished work left on the host. Does nothing when nothing is left. */
  abandon(job: BackupJobSpec): Promise<void>
  /** Writes the backup to the disk in the file. The disk must be at least as large, read as zeros, and be used by
   *  nobody else. Rejects with Damaged when a part of the backup is missing or wrong, which is permanent. */
  fill(source: BackupSource, path: string, options: Pick<WorkOptions, 'signal' | 'onProgress'>): Promise<void>
  /** Call before a guest opens the disk, or leaves the host with it. Resolves when no work reads the disk. That work
   *  starts again at another point. */
  yieldDisk(volume: string): Promise<void>
}
