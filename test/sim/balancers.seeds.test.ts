/** Network edges and load balancers under faults: worlds in which people do nothing but make, change and delete them
 *  and their networks, while their guests do not answer, lose answers and lie. A failing seed is replayed with `npm run
 *  sim -- --first SEED --seeds 1 --only balancers --trace`. */
import { it } from 'vitest'
import { useConnection } from './connection.ts'
import { expectToReach } from './reach.ts'

const FIRST_SEEDS = [1, 2, 3, 4]
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
  expectToReach(REACHED, FIRST_SEEDS, connection(), { only: 'balancers' }))
