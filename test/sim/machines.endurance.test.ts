/** Network edges and load balancers while guests do not answer, lose answers and lie: more seeds than
 *  `machines.test.ts` has time for. */
import { it } from 'vitest'
import { useConnection } from './connection.ts'
import { expectToReach } from './reach.ts'

/** The first ones run with every test. */
const SEEDS = { first: 5, maximum: 8 }
const REACHED = [
  'fault guest does not answer',
  'fault guest loses its answer',
  'fault guest answers something else',
  'fault guest lies',
]

const connection = useConnection()

it('keeps every invariant whatever guests answer', () =>
  expectToReach(REACHED, SEEDS, connection(), { hasMachines: true }))
