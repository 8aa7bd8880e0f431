/** The effect of a backup's restore on its storage. The storage records the restore before a host starts to write, so
 *  that an unfinished one is remembered whatever happens to the backup: until another restore has succeeded, the
 *  content is neither the old one nor that of the backup. Pure. */
import type { StorageStatus } from '../../../resources/storage/index.ts'

export interface RestoreObserved {
  /** The restore that an operation of a backup requests. */
  readonly requested?: { readonly backup: string; readonly operationId: string } | undefined
  /** The outcome of the recorded restore, from its backup; undefined when that no longer exists or does not say. */
  readonly outcome?: 'succeeded' | 'untouched' | 'failed' | undefined
}

export interface RestoreDecision {
  /** What the storage records; undefined when its content is complete. */
  readonly restore: StorageStatus['restore']
  /** The state, instead of `online`. */
  readonly state?: 'restoring' | 'error'
  readonly detail?: string
}

/** `noted` is from the storage's status. */
export function decideRestore(
  noted: StorageStatus['restore'],
  { requested, outcome }: RestoreObserved = {},
): RestoreDecision {
  if (requested !== undefined)
    return {
      restore:
        noted?.operationId === requested.operationId
          ? noted
          : { ...requested, ...(noted !== undefined && isBroken(noted, outcome) ? { wasBroken: true } : {}) },
      state: 'restoring',
    }
  if (noted === undefined || !isBroken(noted, outcome)) return { restore: undefined }
  return {
    restore: noted,
    state: 'error',
    detail: `The restore of backup ${noted.backup} ended before all of it was written. Restore a backup again.`,
  }
}

const isBroken = (
  { wasBroken }: NonNullable<StorageStatus['restore']>,
  outcome: RestoreObserved['outcome'],
): boolean => (outcome === 'succeeded' ? false : outcome === 'untouched' ? wasBroken === true : true)
