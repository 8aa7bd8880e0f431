/** Object storage under faults: worlds in which people do nothing but use it, and move it from the single host to a
 *  gateway while clients write. A failing seed is replayed with `npm run sim -- --first SEED --seeds 1 --only objects
 *  --trace`. */
import { it } from 'vitest'
import { useConnection } from './connection.ts'
import { expectToReach } from './reach.ts'

const FIRST_SEEDS = [3, 10]
const REACHED = [
  'object_storage.migrate succeeded',
  'object_storage.migrate event waiting',
  'answer POST /v1/object-storage 201',
  'answer POST /v1/object-storage/zone-a/rotate-keys 200',
  'staff suspends',
  'fault store breaks',
  'fault store losesAnswer',
  'fault store crashes',
  'fault store refuses',
  'fault store rgw is away',
  'fault store svc-s3-single is away',
]

const connection = useConnection()

it('keeps every invariant, and reaches what is listed', () =>
  expectToReach(REACHED, FIRST_SEEDS, connection(), { only: 'objects' }))
