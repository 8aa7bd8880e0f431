/** Snapshots of storages. They are taken on the page of a storage. */
import { Camera } from 'lucide-react'
import { utc } from '../../texts/format.ts'
import { t } from '../../texts/index.ts'
import { noun } from '../noun.ts'
import { knownTitle, shortId } from '../titles.ts'

export const snapshot = noun({
  name: 'snapshot',
  area: 'storage',
  icon: Camera,
  path: '/snapshots',
  list: 'list_snapshots',
  read: 'get_snapshot',
  update: 'update_snapshot',
  member: 'snapshot',
  titleOf: ({ title, storage_id: origin, created_at: at }) =>
    title || t().choices.snapshotOf(knownTitle('storage', origin), utc(at)),
  namedAfter: { noun: 'storage', idOf: ({ title, storage_id: id }) => (title === '' ? id : undefined) },
  stateOf: ({ state }) => state,
  looks: { online: 'good', error: 'bad' },
  columns: ['storage_id', 'size_gibibytes', 'zone', 'created_at'],
  facts: ['storage_id', 'size_gibibytes', 'used_bytes', 'zone', 'labels', 'created_at'],
  actions: [
    {
      operation: 'delete_snapshot',
      confirm: { type: ({ title, id }) => title || shortId(id), goes: () => [t().choices.goesForGood] },
    },
  ],
})
