/** Seeds whose network delays, loses and repeats. They are here and not among the chosen ones, which are distinguished
 *  by what they reach: with a network a world reaches the same, and what the faults of the network do besides. A
 *  failing seed is replayed with `npm run sim -- --first SEED --seeds 1 --network --trace`. */
import { expect, it } from 'vitest'
import { useConnection } from './connection.ts'
import { simulate } from './simulate.ts'

const connection = useConnection()

it.each([
  [1, false],
  [7, false],
])('keeps every invariant for seed %i in a world with a network', async (seed, hasLosses) => {
  const { violations, faults } = await simulate(seed, connection(), { hasNetwork: true, hasLosses })
  expect(violations, faults).toEqual([])
})
