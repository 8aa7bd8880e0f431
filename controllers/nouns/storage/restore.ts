/** What the restore of a backup makes of its storage. The storage notes the restore before a host begins to write, so
 *  that one which ends half-way is remembered whatever becomes of the backup: until another one has succeeded, the
 *  content is neither what it was nor what the backup is. Pure. */
import type { StorageStatus } from '../../../resources/storage/index.ts'

export interface RestoreObserved {
  /** The restore that an operation of a backup asks for. */
  readonly requested?: { readonly backup: string; readonly operationId: string } | undefined
  /** How the one that the storage notes has ended, as its backup says; undefined when that is not there or says
   *  nothing. */
  readonly outcome?: 'succeeded' | 'untouched' | 'failed' | undefined
}

export interface RestoreDecision {
  /** What the storage notes; undefined when its content is whole. */
  readonly restore: StorageStatus['restore']
  /** Instead of online. */
  readonly state?: 'restoring' | 'error'
  readonly detail?: string
}

/** `noted` is what the storage's status says. */
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
