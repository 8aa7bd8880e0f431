/** What a node can do for backups. Two implementations: `disk-work.ts` for real disks, `simulated.ts`. */
import type { BackupJobSpec, BackupJobStatus } from '../../../resources/backup-job/index.ts'

type Report = 'bytesDone' | 'bytesTotal' | 'bytesSent'
export type WorkProgress = Pick<BackupJobStatus, Report>
/** What the job's status shows at the end. */
export type WorkResult = Pick<
  BackupJobStatus,
  Report | 'sizeBytes' | 'parent' | 'fullBecause' | 'isFrozen' | 'damage' | 'target' | 'isSameHost'
>

export interface WorkOptions {
  readonly signal: AbortSignal
  readonly onProgress: (progress: WorkProgress) => void
}

/** A restore that ended after it had begun to write: the disk is neither what it was nor what the backup is. */
export class HalfWritten extends Error {
  constructor(cause: unknown) {
    super(cause instanceof Error ? cause.message : String(cause), { cause })
    this.name = 'HalfWritten'
  }
}

/** What a disk begins as. */
export interface BackupSource extends Pick<BackupJobSpec, 'accountId' | 'secretName' | 'objectStorageZone'> {
  readonly backup: string
}

export interface BackupWork {
  /** Does the work; may be repeated after it was interrupted anywhere. Rejects when it cannot be done now. */
  run(job: BackupJobSpec, options: WorkOptions): Promise<WorkResult>
  /** Ends what the work that is not done left on the host. Free when nothing is left. */
  abandon(job: BackupJobSpec): Promise<void>
  /** Writes the backup to the disk in the file, which is at least as large, reads as zeros, and is nobody else's.
   *  Rejects with Damaged when a part of the backup is missing or wrong, which it then is for good. */
  fill(source: BackupSource, path: string, options: Pick<WorkOptions, 'signal' | 'onProgress'>): Promise<void>
  /** A guest is about to open the disk, or to leave the host with it: resolves when no work reads it any more. That
   *  work begins anew, at another point. */
  yieldDisk(volume: string): Promise<void>
}
