/** The brake on everything that removes something because something else is missing: one for all sweeps. When much is
 *  missing at once, a store was probably restored from an older state. No sweep may act on that before an operator has
 *  looked. */
import { type Absence, areSweepsStopped, noteAbsences } from '../../db/removal/index.ts'
import { orUnavailable } from './outage.ts'
import type { Parts } from './parts.ts'

/** Records which objects of a kind are missing. Throws Unavailable. */
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

/** Every sweep asks this before it removes something. Throws Unavailable. */
export const mayTakeAway = async ({ db }: Pick<Parts, 'db'>): Promise<boolean> =>
  !(await orUnavailable(areSweepsStopped(db)))
