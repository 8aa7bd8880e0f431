/** Dry runs: work that is carried out up to its writes, none of which is kept. The layers that write (the client of
 *  the Kubernetes API, the database) ask here whether they are in a dry run, so that no code above them can keep
 *  anything. What has effects elsewhere, such as at a payment processor, must not be rehearsed. */
import { AsyncLocalStorage } from 'node:async_hooks'

/** One dry run. */
export interface Rehearsal {
  readonly startedAt: Date
}

const current = new AsyncLocalStorage<Rehearsal | undefined>()

/** Does the work as a dry run. */
export const rehearsing = <Result>(rehearsal: Rehearsal, work: () => Result): Result => current.run(rehearsal, work)

/** Whether the caller is part of a dry run. */
export const isRehearsing = (): boolean => current.getStore() !== undefined

/** Does work that belongs to the platform, and not to the dry run in which it became necessary. */
export const outsideRehearsal = <Result>(work: () => Result): Result => current.run(undefined, work)

interface RehearsalNotes<Notes> {
  /** Of the dry run that the caller is part of; undefined outside of one. */
  current(): Notes | undefined
  of(rehearsal: Rehearsal): Notes
}

/** What a layer notes of each dry run. */
export function rehearsalNotes<Notes>(make: (rehearsal: Rehearsal) => Notes): RehearsalNotes<Notes> {
  const notes = new WeakMap<Rehearsal, Notes>()
  const of = (rehearsal: Rehearsal): Notes => {
    const known = notes.get(rehearsal) ?? make(rehearsal)
    notes.set(rehearsal, known)
    return known
  }
  return {
    of,
    current() {
      const rehearsal = current.getStore()
      return rehearsal === undefined ? undefined : of(rehearsal)
    },
  }
}
