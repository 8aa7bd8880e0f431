/** The first seeds, beside the chosen ones of `seeds.test.ts`: always as many, so that a run is red for its tree and
 *  never for the speed of its machine. Nightly runs have thousands more. */
import { availableParallelism } from 'node:os'
import { afterAll, beforeAll, expect, it } from 'vitest'
import { type TestServer, startPostgres } from '../database.ts'
import { openPool, type Pool } from './pool.ts'

const SEEDS = 36
/** With every so manieth seed hosts are lost. */
const LOSSES_EVERY = 10
/** With every so manieth zones have a network. */
const NETWORK_EVERY = 5
/** So manieth seeds are run twice and must do the same both times. */
const REPEAT_EVERY = 18

let server: TestServer | undefined
let pool: Pool | undefined
const threads = Math.max(2, availableParallelism())

beforeAll(async () => {
  const started = (server = await startPostgres())
  const databases = await Promise.all(Array.from({ length: threads }, () => started.createDatabase()))
  pool = openPool(databases.map(({ url }) => url))
})
afterAll(async () => {
  await pool?.close()
  await server?.stop()
})

it('keeps every invariant', async () => {
  const broken: Record<string, readonly string[]> = {}
  let next = 1
  async function runSeeds(): Promise<void> {
    while (next <= SEEDS) {
      const seed = next++
      const hasLosses = seed % LOSSES_EVERY === 0
      const hasNetwork = seed % NETWORK_EVERY === 0
      const result = await pool?.run({ seed, hasLosses, hasNetwork, isRepeated: seed % REPEAT_EVERY === 0 })
      if (result === undefined || result.violations.length > 0)
        broken[`seed ${seed}${hasLosses ? ' with losses' : ''}${hasNetwork ? ' with a network' : ''}`] =
          result?.violations ?? []
    }
  }
  await Promise.all(Array.from({ length: threads }, runSeeds))
  expect(broken).toEqual({})
})
