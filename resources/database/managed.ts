/** Databases as code. */
import { managed } from '../kit/managed.ts'
import { createDatabase, DatabaseView, deleteDatabase, getDatabase, listDatabases, updateDatabase } from './routes.ts'

export const managedDatabase = managed({
  noun: 'database',
  view: DatabaseView,
  routes: { list: listDatabases, create: createDatabase, read: getDatabase, remove: deleteDatabase },
  isListPartial: true,
  names: ['name'],
  uniqueIn: 'account',
  changes: [{ by: updateDatabase, sets: ['name', 'backup_schedule', 'backup_retention_days', 'is_protected'] }],
  leaves: ['zone_redundant'],
  fields: {
    network_id: { refers: 'network' },
    backup_retention_days: { at: 'backups.retention_days' },
  },
  facts: [
    'id',
    'engine',
    'host',
    'port',
    'connection_uri',
    'tls_server_name',
    'ca_certificate',
    'restored_from',
    'created_at',
  ],
  moments: [
    'state',
    'is_healthy',
    'health_detail',
    'is_configuration_applied',
    'backups',
    'archive_state',
    'archive_pause',
    'certificate_expires_at',
    'active_operation',
  ],
})
