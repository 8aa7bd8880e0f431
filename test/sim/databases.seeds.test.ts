/** Managed databases under faults: worlds in which people do nothing but make, use, restore and delete them, while
 *  their guests, hosts and archives fail and lie, and hosts get a newer image. A failing seed is replayed with `npm run
 *  sim -- --first SEED --seeds 1 --only databases --trace`. */
import { it } from 'vitest'
import { useConnection } from './connection.ts'
import { expectToReach } from './reach.ts'

const FIRST_SEEDS = [1, 2]
const REACHED = [
  'database.create succeeded',
  'database.restore succeeded',
  'database.delete succeeded',
  'answer POST /v1/databases/ID/rotate-credentials 200',
  'server.rebuild by system:controllers',
  'server.rebuild succeeded',
  'fault guest does not answer',
  'fault guest loses its answer',
  'fault guest says what it said before',
  'fault guest says what another would',
  'fault store svc-s3-single is away',
]

const connection = useConnection()

it('keeps every invariant, and reaches what is listed', () =>
  expectToReach(REACHED, FIRST_SEEDS, connection(), { only: 'databases' }))
