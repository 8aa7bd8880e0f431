/** Network edges and load balancers under faults: worlds that have machines, whose guests lose answers and lie. A
 *  failing seed is replayed with `npm run sim -- --first SEED --seeds 1 --machines --trace`. */
import { expect, it } from 'vitest'
import { useConnection } from './connection.ts'
import { watchMachines } from './machines.ts'
import { simulate, type SimulationResult } from './simulate.ts'

const FIRST_SEED = 1
/** Any change of the product changes what a seed reaches: seeds run until everything below is reached. */
const SEEDS_MAXIMUM = 12
const REACHED = [
  'load_balancer.create succeeded',
  'load_balancer.delete succeeded',
  'edge.sync succeeded',
  'edge.delete succeeded',
  'answer PUT /v1/load-balancers/ID/configuration 200',
  'fault guest does not answer',
  'fault guest loses its answer',
  'fault guest answers something else',
  'fault guest lies',
]

const connection = useConnection()

it('keeps every invariant, and reaches what is listed', async () => {
  const reached = new Set<string>()
  const missing = () => REACHED.filter((what) => !reached.has(what))
  for (let seed = FIRST_SEED; seed < FIRST_SEED + SEEDS_MAXIMUM && missing().length > 0; seed += 1) {
    const result: SimulationResult = await simulate(seed, connection(), { hasMachines: true })
    expect(result.violations, `seed ${seed}`).toEqual([])
    for (const what of result.reached) reached.add(what)
  }
  expect(missing()).toEqual([])
})

it('finds a guest that runs what was made for another', () => {
  const guest = (machine: string) => ({ name: 'own', configuration: { machine, generation: 1, fingerprint: 'x' } })
  const hosts = ['own', 'other'].map((machine, index) => ({
    name: `h${index}`,
    machine: { running: () => [guest(machine)] },
  }))
  expect(watchMachines({ hosts: hosts as never, guests: undefined })).toEqual([
    'guest own on h1 runs the configuration of other',
  ])
})
