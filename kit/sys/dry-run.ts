/** Dry runs: work that is carried out up to its writes, none of which is kept. The layers that write (the client of
 *  the Kubernetes API, the database) ask here whether they are in a dry run, so that no code above them can keep
 *  anything. What has effects elsewhere, such as at a payment processor, must not be done as one. */
import { AsyncLocalStorage } from 'node:async_hooks'

/** One dry run. */
export interface DryRunContext {
  readonly startedAt: Date
}

const current = new AsyncLocalStorage<DryRunContext | undefined>()

/** Does the work as a dry run. */
export const inDryRun = <Result>(dryRun: DryRunContext, work: () => Result): Result => current.run(dryRun, work)

/** Whether the caller is part of a dry run. */
export const isDryRun = (): boolean => current.getStore() !== undefined

/** Does work that belongs to the platform, and not to the dry run in which it became necessary. */
export const outsideDryRun = <Result>(work: () => Result): Result => current.run(undefined, work)

interface DryRunNotes<Notes> {
  /** Of the dry run that the caller is part of; undefined outside of one. */
  current(): Notes | undefined
  of(dryRun: DryRunContext): Notes
}

/** What a layer notes of each dry run. */
export function dryRunNotes<Notes>(make: (dryRun: DryRunContext) => Notes): DryRunNotes<Notes> {
  const notes = new WeakMap<DryRunContext, Notes>()
  const of = (dryRun: DryRunContext): Notes => {
    const known = notes.get(dryRun) ?? make(dryRun)
    notes.set(dryRun, known)
    return known
  }
  return {
    of,
    current() {
      const dryRun = current.getStore()
      return dryRun === undefined ? undefined : of(dryRun)
    },
  }
}
