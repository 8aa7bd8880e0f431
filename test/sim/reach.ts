/** Seeds of separate worlds, until everything has been reached that they are there for. */
import type pg from 'pg'
import { expect } from 'vitest'
import { printLine } from '../../kit/sys/process.ts'
import { simulate } from './simulate.ts'
import type { WorldOptions } from './world.ts'

/** So many that reach too little say that those at the beginning have to be chosen anew; more would only take time. */
const OTHERS_MAXIMUM = 10

/** Begins with the seeds that reached all of it last, and goes on with others from 1, as many as are needed: any change
 *  of the product changes what a seed reaches. Then it prints which of them to begin with. Fails at the first
 *  violation, and when so many have not reached it. */
export async function expectToReach(
  wanted: readonly string[],
  first: readonly number[],
  client: pg.Client,
  options: WorldOptions,
): Promise<void> {
  const reached = new Set<string>()
  const useful: number[] = []
  const missing = () => wanted.filter((what) => !reached.has(what))
  const others = Array.from({ length: OTHERS_MAXIMUM }, (_none, index) => index + 1)
  const seeds = [...new Set([...first, ...others])]
  for (const [index, seed] of seeds.entries()) {
    if (missing().length === 0) break
    if (index === first.length) printLine(`seeds ${first.join(' and ')} no longer reach ${missing().join('; ')}`)
    const before = missing().length
    const result = await simulate(seed, client, options)
    expect(result.violations, `seed ${seed}`).toEqual([])
    for (const what of result.reached) reached.add(what)
    if (missing().length < before) useful.push(seed)
  }
  if (useful.some((seed) => !first.includes(seed))) printLine(`begin with the seeds ${useful.join(', ')}`)
  expect(missing(), `seeds that reach some of it: ${useful.join(', ')}`).toEqual([])
}
