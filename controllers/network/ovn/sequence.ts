/** The sequence of OVN (`nb_cfg`): whoever raises it learns from nodes when they have installed what was written
 *  before. Every node writes then: it is raised once a second at most. */
import type { Clock } from '../../../kit/sys/clock.ts'
import type { OvsdbOperation } from './ovsdb.ts'

const PAUSE_MILLISECONDS = 1_000
const RAISE: OvsdbOperation = { op: 'mutate', table: 'NB_Global', where: [], mutations: [['nb_cfg', '+=', 1]] }

export interface Sequence {
  /** The database has it so. */
  note(sequence: number): void
  /** What a transaction adds: that it is raised, when it may be. */
  operations(): readonly OvsdbOperation[]
  /** Of what has been written until now, whether the sequence was raised with it or is yet to be; it will be. */
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
      // It is tried again: a database that is away tells nobody anything meanwhile.
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
