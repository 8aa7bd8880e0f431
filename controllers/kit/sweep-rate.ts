import type { Clock } from '../../kit/sys/clock.ts'

/** So many of a kind are taken away by sweeps within this time, or one in fifty of them, whichever is more. */
const RATE = { count: 20, share: 0.02, milliseconds: 600_000 }

/** The bound of what sweeps take away, also of what was ordered: whoever asks for something waits for its own
 *  controller, and sweeps are for what was taken past it. Of many at once most are left for somebody to look at. */
export interface SweepRate {
  /** Whether this one may go now. `known`: how many of the kind there are. One that may go may so again. */
  mayGo(kind: string, id: string, known: number): boolean
  /** How many may not go yet, by kind; kinds of which none waits are left out. */
  waiting(): ReadonlyMap<string, number>
}

/** Every sweep asks again sooner for what has to wait: what is not asked for any longer is there again, or gone. */
const ASKED_AGAIN_MILLISECONDS = 300_000

export function openSweepRate(clock: Pick<Clock, 'monotonicMilliseconds'>): SweepRate {
  const gone = new Map<string, Map<string, number>>()
  const refused = new Map<string, Map<string, number>>()
  const within = (times: Map<string, number>, milliseconds: number): Map<string, number> => {
    const now = clock.monotonicMilliseconds()
    for (const [one, at] of times) if (now - at >= milliseconds) times.delete(one)
    return times
  }
  return {
    mayGo(kind, id, known) {
      const now = clock.monotonicMilliseconds()
      const own = within(timesOf(gone, kind), RATE.milliseconds)
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
