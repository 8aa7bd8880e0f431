/** Managed databases. */
import { Database as DatabaseIcon } from 'lucide-react'
import { lazy } from 'react'
import type { Database } from '../../../client/schema.ts'
import { gibibytes } from '../../texts/format.ts'
import { t } from '../../texts/index.ts'
import { noun } from '../noun.ts'
import { optionsOf, useZones } from '../options.ts'
import { wordOf } from '../value.tsx'

const notRunning = ({ state }: Pick<Database, 'state'>): string | undefined =>
  state === 'running' ? undefined : t().choices.notRunning(wordOf(state))

export const database = noun({
  name: 'database',
  area: 'services',
  icon: DatabaseIcon,
  path: '/databases',
  list: 'list_databases',
  read: 'get_database',
  create: 'create_database',
  update: 'update_database',
  edit: [{ name: 'name' }, { name: 'backup_schedule' }, { name: 'backup_retention_days' }],
  member: 'database',
  titleOf: ({ name }) => name,
  stateOf: ({ state }) => state,
  looks: { running: 'good', error: 'bad' },
  columns: ['engine', 'plan', 'storage_gibibytes', 'zone', 'created_at'],
  facts: [
    'connection_uri',
    'host',
    'port',
    'database_name',
    'owner_name',
    'engine',
    'plan',
    'storage_gibibytes',
    'network_id',
    'health_detail',
    'backup_schedule',
    'certificate_expires_at',
    'zone',
    'created_at',
  ],
  form: [
    { name: 'name' },
    { name: 'zone', as: 'cards', useOptions: useZones, isFirstChosen: true },
    { name: 'network_id', useOptions: optionsOf('network') },
    { name: 'plan' },
    { name: 'database_name' },
    { name: 'owner_name', isMore: true },
    { name: 'storage_gibibytes', isMore: true },
  ],
  actions: [
    { operation: 'rotate_database_credentials', why: notRunning, confirm: { goes: () => [t().choices.goesPassword] } },
    {
      operation: 'delete_database',
      confirm: {
        type: ({ name }) => name,
        goes: ({ storage_gibibytes: size }) => [t().choices.goesDisk(gibibytes(size))],
      },
    },
  ],
  secret: 'get_database_credentials',
  reads: ['list_database_backups'],
  tabs: [
    {
      id: 'recovery',
      name: () => t().recovery.title,
      view: lazy(async () => ({ default: (await import('./recovery.tsx')).RecoveryTab })),
    },
  ],
})
