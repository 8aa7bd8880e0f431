/** Storages as code. */
import { managed } from '../kit/managed.ts'
import {
  attachStorage,
  createStorage,
  deleteStorage,
  detachStorage,
  getStorage,
  listStorages,
  resizeStorage,
  StorageView,
  updateStorage,
} from './routes.ts'

export const managedStorage = managed({
  noun: 'storage',
  view: StorageView,
  routes: { list: listStorages, create: createStorage, read: getStorage, remove: deleteStorage },
  names: ['title'],
  changes: [
    {
      by: updateStorage,
      sets: ['title', 'labels', 'backup_schedule', 'backup_copy_zone', 'backup_retention_days', 'is_protected'],
    },
    { by: detachStorage, when: { server_id: null } },
    { by: attachStorage, sets: ['server_id'] },
    { by: resizeStorage, sets: ['size_gibibytes'], grows: true },
  ],
  removeNeeds: { server_id: null },
  fields: {
    server_id: { refers: 'server' },
    // shown as its source
    source_backup_id: { shows: 'nothing', refers: 'backup' },
    source_snapshot_id: { shows: 'nothing', refers: 'snapshot' },
    source_storage_id: { shows: 'nothing', refers: 'storage' },
  },
  facts: ['id', 'region', 'is_boot', 'device', 'serial', 'source', 'created_at'],
  moments: ['state', 'state_detail', 'snapshot_count', 'durability', 'active_operation'],
})
