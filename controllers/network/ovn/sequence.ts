/** The sequence of OVN (`nb_cfg`): after raising it, nodes report when they have installed what was written before.
 *  Every node writes then, so it is raised once a second at most. */
import type { Clock } from '../../../kit/sys/clock.ts'
import type { OvsdbOperation } from './ovsdb.ts'

const PAUSE_MILLISECONDS = 1_000
const RAISE: OvsdbOperation = { op: 'mutate', table: 'NB_Global', where: [], mutations: [['nb_cfg', '+=', 1]] }

export interface Sequence {
  /** Records the value in the database. */
  note(sequence: number): void
  /** The operations that a transaction adds to raise the sequence; none when it may not be raised yet. */
  operations(): readonly OvsdbOperation[]
  /** The sequence of everything written until now: the current one when it was raised with the write, else the next
   *  one, which is raised later. */
  ofNow(hasRaised: boolean): number
}

/** `raise` carries out the operations. */
export function openSequence({
  clock,
  raise,
}: {
  readonly clock: Clock
  readonly raise: (operations: readonly OvsdbOperation[]) => Promise<unknown>
}): Sequence {
  let current = 0
  let promised = 0
  let raisedAt = -PAUSE_MILLISECONDS
  let isDue = false

  const operations = () => {
    if (clock.monotonicMilliseconds() - raisedAt < PAUSE_MILLISECONDS) return []
    raisedAt = clock.monotonicMilliseconds()
    return [RAISE]
  }
  const raiseWhenDue = () => {
    if (isDue || current >= promised) return
    isDue = true
    const wait = raisedAt + PAUSE_MILLISECONDS - clock.monotonicMilliseconds()
    clock.after(Math.max(0, wait), async () => {
      isDue = false
      // Retried: a database that is unavailable reports nothing to anyone meanwhile.
      if (current < promised) await raise(operations()).catch(() => {})
      raiseWhenDue()
    })
  }
  return {
    note(sequence) {
      current = sequence
    },
    operations,
    ofNow(hasRaised) {
      const sequence = hasRaised ? current : current + 1
      promised = Math.max(promised, sequence)
      raiseWhenDue()
      return sequence
    },
  }
}
