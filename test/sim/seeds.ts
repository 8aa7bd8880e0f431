/** Seeds as tests, ten to a test, on one PostgreSQL for the file. A failing seed is replayed with
 *  `npm run sim -- --first SEED --seeds 1 --trace`, with `--losses` where hosts are lost. */
import type pg from 'pg'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { startPostgres, type TestServer } from '../database.ts'
import { connectSimulation, simulate } from './simulate.ts'
import type { WorldOptions } from './world.ts'

const SEEDS_PER_TEST = 10

export function describeSeeds(first: number, count: number, options: WorldOptions = {}): void {
  describe('the control plane under faults', () => {
    let server: TestServer
    let client: pg.Client
    beforeAll(async () => {
      server = await startPostgres()
      client = await connectSimulation((await server.createDatabase()).url)
    })
    afterAll(async () => {
      await client?.end()
      await server?.stop()
    })

    it('runs the same way twice for one seed', async () => {
      const runs = [await simulate(first, client, options), await simulate(first, client, options)]
      expect(runs[1]?.fingerprint).toBe(runs[0]?.fingerprint)
    })

    for (let from = first; from < first + count; from += SEEDS_PER_TEST) {
      it(`keeps every invariant for seeds ${from} to ${from + SEEDS_PER_TEST - 1}`, async () => {
        const broken: Record<string, readonly string[]> = {}
        for (let seed = from; seed < from + SEEDS_PER_TEST; seed++) {
          const { violations, faults } = await simulate(seed, client, options)
          if (violations.length > 0) broken[`seed ${seed} (faults: ${faults})`] = violations
        }
        expect(broken).toEqual({})
      })
    }
  })
}
