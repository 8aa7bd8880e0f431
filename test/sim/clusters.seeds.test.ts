/** As many worlds of clusters as half a minute of the processor allows, and one at least. A failing seed is replayed
 *  with `npm run sim -- --first SEED --seeds 1 --only kubernetes --trace`. */
import { expect, it } from 'vitest'
import { printLine } from '../../kit/sys/process.ts'
import { openBudget } from './budget.ts'
import { useConnection } from './connection.ts'
import { simulate } from './simulate.ts'

const FIRST_SEED = 2
const BUDGET_SECONDS = 30

const connection = useConnection()

it('keeps every invariant', async () => {
  const hasTime = openBudget(BUDGET_SECONDS)
  let seed = FIRST_SEED
  // Twenty minutes of virtual time each: nodes go after ten without use.
  for (; seed === FIRST_SEED || hasTime(); seed += 1) {
    const { violations, faults } = await simulate(seed, connection(), { only: 'kubernetes' })
    expect(violations, `seed ${seed}: ${faults}`).toEqual([])
  }
  printLine(`${seed - FIRST_SEED} seeds were run`)
})
