/** Tests must wait as long as their tier allows: something slow on a busy machine is not wrong. */
import { tierOf } from './tiers.ts'

/** After a test or a hook, and in the options of a test. Options of programs are indented more. */
const TIMES = [/^ *\}, ([\d_]{4,})\)$/gm, /, \{ timeout: ([\d_]+) \}, (?:async|\()/g, /^ {2}timeout: ([\d_]+),$/gm]
/** A condition that is false within this time may become true in the next minute. */
const WAIT = /\.poll\(.*\btimeout: ([\d_]+)|\bwaitFor\(.*\btimeout: ([\d_]+)/g
const WAIT_MILLISECONDS_MINIMUM = 60_000
/** The same, with a name; also in code that tests share. */
const PATIENCE = /\bconst (?:PATIENCE|READY|WAIT)\w*MILLISECONDS = ([\d_]+)/g
const PATIENCE_MILLISECONDS_MINIMUM = 90_000

export interface ShortWait {
  /** Its position in the text. */
  readonly index: number
  readonly rule: string
}

/** Waits that are shorter than the tier's, in tests and in code that they share; nothing in other files. */
export function shortWaits(file: string, source: string): readonly ShortWait[] {
  if (!file.startsWith('test/')) return []
  const below = (pattern: RegExp, milliseconds: number, rule: string) =>
    [...source.matchAll(pattern)]
      .filter(([, first, second]) => Number((first ?? second ?? '').replaceAll('_', '')) < milliseconds)
      .map(({ index }) => ({ index, rule }))
  const patience = below(PATIENCE, PATIENCE_MILLISECONDS_MINIMUM, 'patience is what the tier gives: leave it out')
  const tier = tierOf(file)
  if (tier === undefined) return patience
  const { name, testTimeoutMilliseconds: given } = tier
  return [
    ...patience,
    ...TIMES.flatMap((pattern) =>
      below(pattern, given, `a test has no less time than its tier gives (${name}, ${given} ms)`),
    ),
    ...below(WAIT, WAIT_MILLISECONDS_MINIMUM, 'a condition has a minute, or what its tier gives when nothing is said'),
  ]
}
