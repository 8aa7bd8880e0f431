/** Stores that go back to older states, while hosts keep what they have: no guest ends and no bytes go. A failing seed
 *  is replayed with `npm run sim -- --first SEED --seeds 1 --restores --trace`. */
import { expect, it } from 'vitest'
import { useConnection } from './connection.ts'
import { simulate } from './simulate.ts'

const connection = useConnection()

it.each([3, 5])('keeps what runs and what was written in seed %i', async (seed) => {
  const { violations, reached } = await simulate(seed, connection(), { hasRestores: true })
  expect(violations).toEqual([])
  expect(reached.some((what) => what.startsWith('fault storesGoBack'))).toBe(true)
})
