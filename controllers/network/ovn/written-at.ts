/** The sequence at which the rows of each owner were last written. */
import type { EncodedBundle } from './difference.ts'
import { nameOfOwner } from './owned-rows.ts'

/** How many owners without rows are remembered, the newest ones: a deletion may still wait until hosts have installed
 *  it. */
const EMPTIED_MAXIMUM = 10_000

export interface WrittenAt {
  /** Undefined when this process does not know. */
  of(bundle: EncodedBundle): number | undefined
  note(bundle: EncodedBundle, sequence: number): void
}

export function openWrittenAt(emptiedMaximum = EMPTIED_MAXIMUM): WrittenAt {
  const filled = new Map<string, number>()
  const emptied = new Map<string, number>()
  return {
    of(bundle) {
      const owner = nameOfOwner(bundle)
      return filled.get(owner) ?? emptied.get(owner)
    },
    note(bundle, sequence) {
      const owner = nameOfOwner(bundle)
      filled.delete(owner)
      emptied.delete(owner)
      const [target, [oldest]] = [bundle.rows.size === 0 ? emptied : filled, emptied.keys()]
      target.set(owner, sequence)
      if (emptied.size > emptiedMaximum && oldest !== undefined) emptied.delete(oldest)
    },
  }
}
