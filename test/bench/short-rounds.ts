/** Runs every benchmark of a tier for one short round, so that none rots. What it measures then says nothing. */
import { afterAll, expect, it } from 'vitest'
import { runProgram } from '../../agents/node/run-program.ts'
import { benchmarkFiles, loadBenchmark } from '../../bench/list.ts'
import { stopPostgres } from '../../bench/postgres.ts'
import { type Bench, measure } from '../../bench/runner.ts'
import { TIERS } from '../../tools/tiers.ts'

const SECONDS = 0.02

const isInstalled = (program: string): Promise<boolean> =>
  runProgram(program, ['version']).then(
    () => true,
    () => false,
  )

/** Makes a test of each; one that is skipped and says why where the machine lacks what the tier needs. */
export async function shortRounds(tier: Bench['tier']): Promise<void> {
  const missing = await TIERS.find(({ name }) => name === tier)?.missing()
  if (missing !== undefined) return void it(`benchmarks of the tier ${tier} run`, ({ skip }) => skip(missing))
  afterAll(stopPostgres)
  for (const file of await benchmarkFiles()) {
    const bench = await loadBenchmark(file)
    if (bench.tier !== tier) continue
    it(`${bench.name} runs`, async ({ skip }) => {
      if (bench.program !== undefined && !(await isInstalled(bench.program)))
        skip(`${bench.program} is not installed (Debian: ${bench.program})`)
      const result = await measure(bench, SECONDS, 'short')
      expect(result).toMatchObject({ pairs: 1, facts: expect.any(Object) })
      expect(result.ratio).toBeGreaterThan(0)
      expect(Object.keys(result.facts)).toEqual(expect.arrayContaining(Object.keys(bench.limits ?? {})))
      // What may never happen does not take long to see.
      for (const [fact, limit] of Object.entries(bench.limits ?? {}))
        if (limit === 0)
          expect({ [fact]: Number(result.facts[fact]) }, JSON.stringify(result.facts)).toEqual({ [fact]: 0 })
    })
  }
}
