/** The checkers of the simulation are tested as well: in a world without one of the defences they must find what it
 *  keeps away. */
import { expect, it } from 'vitest'
import { useConnection } from './connection.ts'
import { simulate, type SimulationOptions } from './simulate.ts'

/** Not every seed comes near the edge that a defence guards. */
const SEEDS_MAXIMUM = 40

const connection = useConnection()

/** Begins with the seed that found it last; after a change of the product it may be another. */
async function firstViolation(
  options: SimulationOptions,
  pattern: RegExp,
  lastSeed: number,
): Promise<string | undefined> {
  for (let seed = lastSeed; seed < lastSeed + SEEDS_MAXIMUM; seed += 1) {
    const found = (await simulate(seed, connection(), options)).violations.find((violation) => pattern.test(violation))
    if (found !== undefined) return found
  }
  return undefined
}

it.each<readonly [string, SimulationOptions, RegExp, number]>([
  [
    'a sender that goes on after the hand-over',
    { without: 'either_or', isChaosOnly: true },
    /^guest \S+ runs on \S+ and \S+ at once$/,
    23,
  ],
  [
    'a node that takes shared data with it when it lets go',
    { without: 'retention' },
    /disk .*(gone|holds undefined)|is not on/,
    23,
  ],
  [
    'a host that removes what no object names',
    { without: 'unnamed', hasRestores: true },
    /without an order$|is nowhere$/,
    10,
  ],
  [
    'a host that makes a disk again',
    { without: 'made_once', hasRestores: true, isPooled: false, isChaosOnly: true },
    /^disk \S+ is made a second time on \S+, and what it held is nowhere$/,
    8,
  ],
])('finds %s', async (_what, options, pattern, lastSeed) => {
  expect(await firstViolation(options, pattern, lastSeed)).toMatch(pattern)
})
