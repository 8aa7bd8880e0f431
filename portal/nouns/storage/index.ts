/** Block storages. */
import { HardDrive } from 'lucide-react'
import type { Storage } from '../../../client/schema.ts'
import { gibibytes } from '../../texts/format.ts'
import { t } from '../../texts/index.ts'
import { noun } from '../noun.ts'
import { optionsOf, useZones } from '../options.ts'
import { knownTitle } from '../titles.ts'
import { wordOf } from '../value.tsx'

const notOnline = ({ state }: Pick<Storage, 'state'>): string | undefined =>
  state === 'online' ? undefined : t().choices.notOnline(wordOf(state))

const bootOf = ({ is_boot: isBoot, server_id: server }: Pick<Storage, 'is_boot' | 'server_id'>): string =>
  isBoot && server !== null ? t().choices.bootOf(knownTitle('server', server)) : ''

export const storage = noun({
  name: 'storage',
  area: 'storage',
  icon: HardDrive,
  path: '/storages',
  list: 'list_storages',
  read: 'get_storage',
  create: 'create_storage',
  update: 'update_storage',
  edit: [{ name: 'title' }, { name: 'backup_schedule' }, { name: 'backup_retention_days' }],
  member: 'storage',
  titleOf: ({ title, id, ...item }) => title || bootOf(item) || id,
  namedAfter: {
    noun: 'server',
    idOf: ({ title, is_boot: isBoot, server_id: server }) =>
      title === '' && isBoot && server !== null ? server : undefined,
  },
  stateOf: ({ state }) => state,
  looks: { online: 'good', error: 'bad' },
  columns: ['size_gibibytes', 'tier', 'server_id', 'zone', 'created_at'],
  facts: [
    'size_gibibytes',
    'tier',
    'durability',
    'server_id',
    'device',
    'snapshot_count',
    'backup_schedule',
    'backup_retention_days',
    'backup_copy_zone',
    'zone',
    'created_at',
  ],
  form: [
    { name: 'title' },
    { name: 'zone', as: 'cards', useOptions: useZones, isFirstChosen: true },
    { name: 'size_gibibytes' },
    { name: 'tier' },
    { name: 'server_id', useOptions: optionsOf('server') },
    { name: 'source_snapshot_id', useOptions: optionsOf('snapshot'), isMore: true },
    { name: 'source_backup_id', useOptions: optionsOf('backup'), isMore: true },
    { name: 'source_storage_id', useOptions: optionsOf('storage'), isMore: true },
    { name: 'backup_schedule', isMore: true },
    { name: 'backup_retention_days', isMore: true },
    { name: 'labels', isMore: true },
    { name: 'is_protected', isMore: true },
  ],
  initial: { size_gibibytes: 10 },
  reads: ['list_snapshots', 'list_backups'],
  actions: [
    {
      operation: 'attach_storage',
      why: (item) => (item.server_id === null ? notOnline(item) : t().choices.isAttached),
      form: [{ name: 'server_id', useOptions: optionsOf('server') }],
      isFirst: true,
    },
    {
      operation: 'detach_storage',
      why: ({ server_id: server, is_boot: isBoot }) =>
        isBoot ? t().choices.isBoot : server === null ? t().choices.notAttached : undefined,
      confirm: {},
      form: [{ name: 'force' }],
    },
    { operation: 'resize_storage', why: notOnline, form: [{ name: 'size_gibibytes' }] },
    { operation: 'create_snapshot', why: notOnline, form: [{ name: 'title' }], isFirst: true },
    { operation: 'create_backup', why: notOnline, form: [{ name: 'title' }] },
    {
      operation: 'delete_storage',
      why: ({ server_id: server, snapshot_count: snapshots }) =>
        server !== null ? t().choices.isAttached : snapshots > 0 ? t().choices.hasSnapshots : undefined,
      confirm: {
        type: ({ title, id }) => title || id,
        goes: ({ size_gibibytes: size }) => [t().choices.goesDisk(gibibytes(size))],
        stays: () => [t().choices.staysBackups],
      },
    },
  ],
})
