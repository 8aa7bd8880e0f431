/** Seeds as tests, ten to a test. A failing seed is replayed with `npm run sim -- --first SEED --seeds 1 --trace`, with
 *  `--losses` where
 *  hosts are lost. Files of few seeds keep every core busy to the end. */
import { describe, expect, it } from 'vitest'
import { useConnection } from './connection.ts'
import { simulate } from './simulate.ts'
import type { WorldOptions } from './world.ts'

const SEEDS_PER_TEST = 10

export function describeSeeds(first: number, count: number, options: WorldOptions = {}): void {
  describe('the control plane under faults', () => {
    const connection = useConnection()
    let firstFingerprint: string | undefined

    for (let from = first; from < first + count; from += SEEDS_PER_TEST) {
      it(`keeps every invariant for seeds ${from} to ${from + SEEDS_PER_TEST - 1}`, async () => {
        const broken: Record<string, readonly string[]> = {}
        for (let seed = from; seed < from + SEEDS_PER_TEST; seed++) {
          const { violations, faults, fingerprint } = await simulate(seed, connection(), options)
          if (seed === first) firstFingerprint = fingerprint
          if (violations.length > 0) broken[`seed ${seed} (faults: ${faults})`] = violations
        }
        expect(broken).toEqual({})
      })
    }

    it('runs the same way again for one seed, in whatever order the database finds rows', async () => {
      const expected = firstFingerprint ?? (await simulate(first, connection(), options)).fingerprint
      await connection().query(
        'set enable_nestloop to off; set enable_indexscan to off; set enable_bitmapscan to off; discard plans',
      )
      const { fingerprint } = await simulate(first, connection(), options)
      expect(fingerprint).toBe(expected)
    })
  })
}
