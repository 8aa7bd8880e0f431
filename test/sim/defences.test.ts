/** The checkers of the simulation are tested as well: in a world without one of the defences they must find what it
 *  keeps away. */
import { expect, it } from 'vitest'
import { useConnection } from './connection.ts'
import { simulate, type SimulationOptions } from './simulate.ts'

/** Not every seed comes near the edge that a defence guards. */
const SEEDS_MAXIMUM = 20

const connection = useConnection()

async function firstViolation(options: SimulationOptions, pattern: RegExp): Promise<string | undefined> {
  for (let seed = 1; seed <= SEEDS_MAXIMUM; seed += 1) {
    const found = (await simulate(seed, connection(), options)).violations.find((violation) => pattern.test(violation))
    if (found !== undefined) return found
  }
  return undefined
}

it.each<readonly [string, SimulationOptions, RegExp]>([
  [
    'a sender that goes on after the hand-over',
    { without: 'either_or', isChaosOnly: true },
    /^guest \S+ runs on \S+ and \S+ at once$/,
  ],
  [
    'a node that takes shared data with it when it lets go',
    { without: 'retention' },
    /disk .*(gone|holds undefined)|is not on/,
  ],
])('finds %s', async (_what, options, pattern) => {
  expect(await firstViolation(options, pattern)).toMatch(pattern)
})
