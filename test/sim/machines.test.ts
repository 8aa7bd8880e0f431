/** Network edges and load balancers under faults: worlds that have machines, whose guests do not answer, lose answers
 *  and lie. A failing seed is replayed with `npm run sim -- --first SEED --seeds 1 --machines --trace`. */
import { expect, it } from 'vitest'
import { useConnection } from './connection.ts'
import { watchMachines } from './machines.ts'
import { expectToReach } from './reach.ts'

const FIRST_SEEDS = [10, 14]
const SEEDS_MAXIMUM = 24
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

it('keeps every invariant, and reaches what is listed', () =>
  expectToReach(REACHED, { first: FIRST_SEEDS, maximum: SEEDS_MAXIMUM }, connection(), { hasMachines: true }))

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
