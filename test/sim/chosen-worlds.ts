/** Chosen seeds as tests, one for each, and one of what they still reach together. A failing seed is replayed with
 *  `npm run sim -- --first SEED --seeds 1 --trace`, with `--losses` where hosts are lost. */
import { availableParallelism } from 'node:os'
import { afterAll, beforeAll, expect, it } from 'vitest'
import { useDatabase } from '../database.ts'
import type { ChosenSeed } from './chosen.ts'
import { openPool, type Pool, type SeedResult } from './pool.ts'

const THREADS = Math.max(2, availableParallelism())
/** Each of so many seeds runs again with other plans of the database: of the first ones a short one. */
const REPEAT_EVERY = 8
const REPEATED = 1
/** Any change of the product changes what a seed reaches. Where less is left, seeds have to be chosen anew. */
const STILL_REACHED_MINIMUM = 0.9

/** Answers how to wait for what all of them reached, inside a test. */
export function testChosenSeeds(seeds: readonly ChosenSeed[]): () => Promise<readonly string[]> {
  const databases = Array.from({ length: THREADS }, () => useDatabase())
  let pool: Pool | undefined
  let results: readonly Promise<SeedResult>[] = []
  const allReached = async () => (await Promise.all(results)).flatMap(({ reached }) => reached)

  beforeAll(() => {
    const opened = (pool = openPool(databases.map(({ url }) => url)))
    results = seeds.map(({ seed, hasLosses }, index) =>
      opened.run({ seed, hasLosses, isRepeated: index % REPEAT_EVERY === REPEATED }),
    )
    for (const result of results) result.catch(() => {}) // thrown by its test
  })
  afterAll(() => pool?.close())

  it.each(seeds.map(({ seed, hasLosses }, index) => [`${seed}${hasLosses ? ' with losses' : ''}`, index] as const))(
    'keeps every invariant for seed %s',
    async (_name, index) => {
      const result = await results[index]
      expect(result?.violations, `faults: ${result?.faults}`).toEqual([])
    },
  )

  it('still reaches what the seeds were chosen for', async () => {
    const reached = new Set(await allReached())
    const wanted = seeds.flatMap(({ adds }) => adds)
    const missing = wanted.filter((what) => !reached.has(what))
    expect(wanted.length).toBeGreaterThan(0)
    expect(missing.filter((what) => what.startsWith('fault ') && !what.includes(' during '))).toEqual([])
    expect(missing.filter((what) => what.endsWith(' succeeded'))).toEqual([])
    expect(
      1 - missing.length / wanted.length,
      `choose seeds anew (docs/testing.md); no longer reached: ${missing.join('; ')}`,
    ).toBeGreaterThan(STILL_REACHED_MINIMUM)
  })
  return allReached
}
