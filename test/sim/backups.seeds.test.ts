/** Backups under faults: worlds whose zones have a place for them, in stores that fail. A failing seed is replayed with
 *  `npm run sim -- --first SEED --seeds 1 --only backups --trace`. */
import { it } from 'vitest'
import { useConnection } from './connection.ts'
import { expectToReach } from './reach.ts'

const FIRST_SEEDS = [4, 12, 8]
const REACHED = [
  'storage.backup succeeded',
  'backup.delete succeeded',
  'backup.restore succeeded',
  'backup.verify succeeded',
  // of a copy in another zone, of what a storage held before a restore, and by a schedule
  'storage.backup event copied',
  'snapshot.create by system:backup_restore',
  'storage.backup by system:backup_schedule',
  'fault store answers 500',
  'fault store loses its answer',
]

const connection = useConnection()

it('keeps every invariant, and reaches what is listed', () =>
  expectToReach(REACHED, FIRST_SEEDS, connection(), { only: 'backups' }))
