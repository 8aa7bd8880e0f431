/** Seeds of worlds of their own, until everything has been reached that they are there for. */
import type pg from 'pg'
import { expect } from 'vitest'
import { simulate } from './simulate.ts'
import type { WorldOptions } from './world.ts'

/** Fails at the first violation, and when so many seeds have not reached all of it. */
export async function expectToReach(
  wanted: readonly string[],
  seeds: { readonly first: number; readonly maximum: number },
  client: pg.Client,
  options: WorldOptions,
): Promise<void> {
  const reached = new Set<string>()
  const missing = () => wanted.filter((what) => !reached.has(what))
  for (let seed = seeds.first; seed < seeds.first + seeds.maximum && missing().length > 0; seed += 1) {
    const result = await simulate(seed, client, options)
    expect(result.violations, `seed ${seed}`).toEqual([])
    for (const what of result.reached) reached.add(what)
  }
  expect(missing()).toEqual([])
}
