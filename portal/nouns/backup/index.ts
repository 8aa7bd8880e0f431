/** Backups of storages. They are made on the page of a storage, or by its schedule. */
import { Archive } from 'lucide-react'
import type { Backup } from '../../../client/schema.ts'
import { utc } from '../../texts/format.ts'
import { t } from '../../texts/index.ts'
import { noun } from '../noun.ts'
import { knownTitle, shortId } from '../titles.ts'
import { wordOf } from '../value.tsx'

const notOnline = ({ state }: Backup): string | undefined =>
  state === 'online' ? undefined : t().choices.notOnline(wordOf(state))
const typed = ({ title, id }: Backup): string => title || shortId(id)

export const backup = noun({
  name: 'backup',
  area: 'storage',
  icon: Archive,
  path: '/backups',
  list: 'list_backups',
  read: 'get_backup',
  member: 'backup',
  titleOf: ({ title, origin_storage_id: origin, created_at: at }) =>
    title || t().choices.backupOf(knownTitle('storage', origin), utc(at)),
  namedAfter: { noun: 'storage', idOf: ({ title, origin_storage_id: id }) => (title === '' ? id : undefined) },
  stateOf: ({ state }) => state,
  looks: { online: 'good', error: 'bad' },
  columns: ['origin_storage_id', 'size_gibibytes', 'kind', 'verified_at', 'created_at'],
  facts: [
    'origin_storage_id',
    'size_gibibytes',
    'kind',
    'target',
    'same_host',
    'verified_at',
    'verification_error',
    'zone',
    'created_at',
    'completed_at',
    'expires_at',
  ],
  actions: [
    {
      operation: 'restore_backup',
      why: notOnline,
      confirm: { type: typed, goes: () => [t().choices.goesNewer], stays: () => [t().choices.staysBackups] },
      form: [{ name: 'force' }],
      isFirst: true,
    },
    { operation: 'verify_backup', why: notOnline, isFirst: true },
    { operation: 'delete_backup', confirm: { type: typed, goes: () => [t().choices.goesForGood] } },
  ],
})
