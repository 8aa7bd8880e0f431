/** As many of the first thousand seeds as three minutes of the processor allow, beside the chosen ones of
 *  `seeds.test.ts`. */
import { availableParallelism } from 'node:os'
import { afterAll, beforeAll, expect, it } from 'vitest'
import { printLine } from '../../kit/sys/process.ts'
import { type TestServer, startPostgres } from '../database.ts'
import { openBudget } from './budget.ts'
import { openPool, type Pool } from './pool.ts'

const SEEDS = 1_000
/** With every so manieth seed hosts are lost. */
const LOSSES_EVERY = 10
/** With every so manieth zones have a network. */
const NETWORK_EVERY = 5
const REPEAT_EVERY = 50
/** No seed is begun after it, once the least are run. */
const BUDGET_SECONDS = 180
/** So many are run however slow the machine is: the result of less would say little. */
const SEEDS_MINIMUM = 6

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

it('keeps every invariant for up to a thousand seeds', async () => {
  const broken: Record<string, readonly string[]> = {}
  const hasTime = openBudget(BUDGET_SECONDS)
  let [next, count] = [1, 0]
  async function runSeeds(): Promise<void> {
    while (next <= SEEDS && (next <= SEEDS_MINIMUM || hasTime())) {
      const seed = next++
      const hasLosses = seed % LOSSES_EVERY === 0
      const hasNetwork = seed % NETWORK_EVERY === 0
      const result = await pool?.run({ seed, hasLosses, hasNetwork, isRepeated: seed % REPEAT_EVERY === 0 })
      count += 1
      if (result === undefined || result.violations.length > 0)
        broken[`seed ${seed}${hasLosses ? ' with losses' : ''}${hasNetwork ? ' with a network' : ''}`] =
          result?.violations ?? []
    }
  }
  await Promise.all(Array.from({ length: threads }, runSeeds))
  printLine(`${count} seeds were run`)
  expect(broken).toEqual({})
})
