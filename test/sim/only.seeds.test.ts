/** As many worlds of object storage, of databases and of clusters as half a minute of the processor allows, beside
 *  those of `objects.test.ts` and `databases.test.ts`. */
import { expect, it } from 'vitest'
import { printLine } from '../../kit/sys/process.ts'
import { openBudget } from './budget.ts'
import { useConnection } from './connection.ts'
import { simulate } from './simulate.ts'

/** Worlds of objects differ much in length: these are short ones. */
const SEEDS = {
  objects: { first: 2, maximum: 7, least: 1 },
  databases: { first: 1_001, maximum: 1_000, least: 1 },
  // Twenty minutes of virtual time each: nodes go after ten without use.
  kubernetes: { first: 2, maximum: 1_000, least: 1 },
} as const
const BUDGET_SECONDS = 30

const connection = useConnection()

it.each(['objects', 'databases', 'kubernetes'] as const)('keeps every invariant of %s', async (only) => {
  const hasTime = openBudget(BUDGET_SECONDS)
  const { first, maximum, least } = SEEDS[only]
  let seed = first
  for (; seed < first + least || hasTime(); seed += 1) {
    if (seed === first + maximum) break
    const { violations, faults } = await simulate(seed, connection(), { only })
    expect(violations, `seed ${seed}: ${faults}`).toEqual([])
  }
  printLine(`${seed - first} seeds of ${only} were run`)
})
