import type { Clock } from '../../kit/sys/clock.ts'

/** Sweeps remove at most this many objects of a kind within this time, or one in fifty of them, whichever is more. */
const RATE = { count: 20, share: 0.02, milliseconds: 600_000 }

/** The bound of what sweeps remove, including objects whose deletion was ordered: a requested deletion is done by the
 *  object's own controller, and sweeps are for objects that were deleted without it. When there are many at once, most
 *  are left for an operator to check. */
export interface SweepRate {
  /** Whether this one may be removed now. `known`: how many of the kind exist. The answer stays true when asked
   *  again. */
  mayGo(kind: string, id: string, known: number): boolean
  /** How many may not be removed yet, by kind; kinds of which none waits are left out. */
  waiting(): ReadonlyMap<string, number>
}

/** Every sweep asks again within this time for what has to wait. An object that is no longer asked for has reappeared
 *  or no longer exists. */
const ASKED_AGAIN_MILLISECONDS = 300_000

export function openSweepRate(clock: Pick<Clock, 'monotonicMilliseconds'>): SweepRate {
  const removals = new Map<string, Map<string, number>>()
  const refused = new Map<string, Map<string, number>>()
  const within = (times: Map<string, number>, milliseconds: number): Map<string, number> => {
    const now = clock.monotonicMilliseconds()
    for (const [one, at] of times) if (now - at >= milliseconds) times.delete(one)
    return times
  }
  return {
    mayGo(kind, id, known) {
      const now = clock.monotonicMilliseconds()
      const own = within(timesOf(removals, kind), RATE.milliseconds)
      if (own.has(id)) return true
      const waiting = timesOf(refused, kind)
      if (own.size >= Math.max(RATE.count, known * RATE.share)) {
        waiting.set(id, now)
        return false
      }
      waiting.delete(id)
      own.set(id, now)
      return true
    },
    waiting: () =>
      new Map(
        [...refused]
          .map(([kind, times]) => [kind, within(times, ASKED_AGAIN_MILLISECONDS).size] as const)
          .filter(([, count]) => count > 0),
      ),
  }
}

function timesOf(all: Map<string, Map<string, number>>, kind: string): Map<string, number> {
  const known = all.get(kind) ?? new Map<string, number>()
  all.set(kind, known)
  return known
}
