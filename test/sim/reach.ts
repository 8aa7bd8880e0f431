/** Seeds of worlds of their own, until everything has been reached that they are there for. */
import type pg from 'pg'
import { expect } from 'vitest'
import { simulate } from './simulate.ts'
import type { WorldOptions } from './world.ts'

/** Begins with the seeds that reached all of it last, and goes on with others from 1, as many as are needed: any change
 *  of the product changes what a seed reaches. Fails at the first violation, and when so many have not reached it. */
export async function expectToReach(
  wanted: readonly string[],
  seeds: { readonly first: readonly number[]; readonly maximum: number },
  client: pg.Client,
  options: WorldOptions,
): Promise<void> {
  const reached = new Set<string>()
  const missing = () => wanted.filter((what) => !reached.has(what))
  const others = Array.from({ length: seeds.maximum }, (_none, index) => index + 1)
  for (const seed of new Set([...seeds.first, ...others])) {
    if (missing().length === 0) break
    const result = await simulate(seed, client, options)
    expect(result.violations, `seed ${seed}`).toEqual([])
    for (const what of result.reached) reached.add(what)
  }
  expect(missing()).toEqual([])
}
