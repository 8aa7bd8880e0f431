/** The brake of everything that takes something away because something else is missing: one for all sweeps. Much that
 *  is missing at once is a store of yesterday, and no sweep may act on that before somebody has looked. */
import { type Absence, areSweepsStopped, noteAbsences } from '../db/removal/index.ts'
import type { Clock } from '../kit/sys/clock.ts'
import { orUnavailable } from './database.ts'
import type { Parts } from './parts.ts'

/** Notes which of a kind are missing. Throws Unavailable. */
export async function lookForAbsence(
  { db, clock, log }: Pick<Parts, 'db' | 'clock' | 'log'>,
  kind: string,
  look: Parameters<typeof noteAbsences>[2],
): Promise<void> {
  const { found, isMass } = await orUnavailable(noteAbsences(db, kind, look, clock.now()))
  if (found === 0) return
  const fields = { kind, found, missing: look.absent.length, known: look.known, names: named(look.absent) }
  if (isMass) log.error('so many are missing at once that every sweep stops', fields)
  else log.warn('missing, and never ordered to go: kept', fields)
}

const NAMED_MAXIMUM = 10
const named = (absent: readonly Absence[]): readonly string[] =>
  absent.slice(0, NAMED_MAXIMUM).map(({ namespace, name }) => `${namespace}/${name}`)

/** Asked by every sweep before it takes something away. Throws Unavailable. */
export const mayTakeAway = async ({ db }: Pick<Parts, 'db'>): Promise<boolean> =>
  !(await orUnavailable(areSweepsStopped(db)))

/** So many of a kind are taken away by sweeps within this time, or one in fifty of them, whichever is more. */
const RATE = { count: 20, share: 0.02, milliseconds: 600_000 }

/** The bound of what sweeps take away, also of what was ordered: whoever asks for something waits for its own
 *  controller, and sweeps are for what was taken past it. Of many at once most are left for somebody to look at. */
export interface SweepRate {
  /** Whether this one may go now. `known`: how many of the kind there are. One that may go may so again. */
  mayGo(kind: string, id: string, known: number): boolean
}

export function openSweepRate(clock: Pick<Clock, 'monotonicMilliseconds'>): SweepRate {
  const gone = new Map<string, Map<string, number>>()
  return {
    mayGo(kind, id, known) {
      const now = clock.monotonicMilliseconds()
      const own = gone.get(kind) ?? new Map<string, number>()
      gone.set(kind, own)
      for (const [one, at] of own) if (now - at >= RATE.milliseconds) own.delete(one)
      if (own.has(id)) return true
      if (own.size >= Math.max(RATE.count, known * RATE.share)) return false
      own.set(id, now)
      return true
    },
  }
}
