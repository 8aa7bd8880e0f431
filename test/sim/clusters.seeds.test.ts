/** Worlds of clusters. A failing seed is replayed with
 *  `npm run sim -- --first SEED --seeds 1 --only kubernetes --trace`. */
import { expect, test } from 'vitest'
import { useConnection } from './connection.ts'
import { simulate } from './simulate.ts'

const connection = useConnection()

// Twenty minutes of virtual time each: nodes are removed after ten without use.
test.each([2, 3])('keeps every invariant for seed %i', async (seed) => {
  const { violations, faults } = await simulate(seed, connection(), { only: 'kubernetes' })
  expect(violations, faults).toEqual([])
})
