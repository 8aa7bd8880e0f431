/** Public shape and routes of storages, and the conversion from the stored shape. */
import { z } from 'zod'
import { DATA_STORAGES_PER_SERVER_MAXIMUM, type StorageFacts } from '../../domain/storage/rules.ts'
import type { ZoneSpec, ZoneStatus } from '../catalog/index.ts'
import { EXAMPLE } from '../kit/examples.ts'
import { activeOperationOf, carrierOf, OperationView, namedTarget, toOperationView } from '../operation/index.ts'
import {
  BackupSchedule,
  DateTime,
  Id,
  LabelFilters,
  Labels,
  type OperationProgress,
  PageQuery,
  type Stored,
  ZoneName,
} from '../kit/shapes.ts'
import { verbsOf } from '../kit/verbs.ts'
import { viewOf } from '../kit/view.ts'
import {
  BACKUP_RETENTION_DAYS_DEFAULT,
  STORAGE_STATES,
  STORAGE_TIERS,
  type StorageSource,
  type StorageSpec,
  type StorageStatus,
} from './stored.ts'
import { DiskGibibytes, RetentionDays, Title } from '../kit/fields.ts'

export const StorageView = z
  .strictObject({
    id: z.string(),
    zone: z.string(),
    region: z.string(),
    title: z.string(),
    size_gibibytes: z.int(),
    tier: z.enum(STORAGE_TIERS),
    state: z.enum(STORAGE_STATES),
    state_detail: z.string(),
    server_id: z.string().nullable(),
    is_boot: z.boolean(),
    device: z
      .string()
      .nullable()
      .describe('Device name in every guest: vda for a boot storage. Guests name other disks in detection order.'),
    serial: z.string().describe('Serial number in the guest: /dev/disk/by-id/virtio-<serial>.'),
    source: z.strictObject({ kind: z.enum(['template', 'backup', 'snapshot', 'storage']), id: z.string() }).nullable(),
    backup_schedule: z.string().nullable(),
    backup_copy_zone: z.string().nullable(),
    backup_retention_days: z.int(),
    snapshot_count: z.int(),
    durability: z
      .enum(['replicated', 'degraded', 'single_copy'])
      .describe(
        'replicated survives the loss of its host. degraded will, after the shared storage has restored missing ' +
          'copies. single_copy is on the disks of one host.',
      ),
    labels: z.record(z.string(), z.string()),
    is_protected: z.boolean(),
    active_operation: OperationView.nullable(),
    created_at: DateTime,
  })
  .meta({ id: 'Storage' })
export type StorageView = z.infer<typeof StorageView>
export type StoredStorage = Stored<StorageSpec, StorageStatus>

/** Facts of other objects that the view needs. */
export interface StorageSurroundings {
  readonly zone: ZoneSpec | undefined
  /** Pool state reported by the shared storage of the zone, if the platform may read it. */
  readonly pools?: NonNullable<ZoneStatus['sharedStorage']>['pools']
  readonly snapshotCount: number
  /** The backup of it in progress. */
  readonly backup?: { readonly id: string; readonly operation: OperationProgress } | undefined
}

const SERIAL_LENGTH = 20
/** Serial number by which a guest finds the disk of the storage. */
export const serialOf = (storageId: string): string => storageId.replaceAll('-', '').slice(0, SERIAL_LENGTH)

/** Shared storage that does not report how it keeps data counts as replicated: its administrator vouches for it. */
function durabilityOf(pool: string | undefined, pools: StorageSurroundings['pools'] = []): StorageView['durability'] {
  const state = pools.find(({ name }) => name === pool)
  if (pool === undefined || state?.replicas === 1) return 'single_copy'
  return state === undefined || state.misplacedGroups === 0 ? 'replicated' : 'degraded'
}

export function toStorageView(
  storage: StoredStorage,
  { zone, pools, snapshotCount, backup }: StorageSurroundings,
): StorageView {
  const { name, spec, status, createdAt } = storage
  return viewOf(StorageView, spec, {
    id: name,
    region: zone?.region ?? status?.region ?? '',
    state: storageStateOf(storage),
    state_detail: status?.stateDetail ?? '',
    server_id: spec.serverId ?? status?.serverId ?? null,
    device: spec.isBoot ? 'vda' : null,
    serial: serialOf(name),
    source: spec.source === undefined ? null : sourceViewOf(spec.source),
    backup_retention_days: spec.backupRetentionDays ?? BACKUP_RETENTION_DAYS_DEFAULT,
    snapshot_count: snapshotCount,
    durability: durabilityOf(status?.pool, pools),
    active_operation: activeOf(storage, backup),
    created_at: createdAt,
  })
}

/** Its own operation, or the backup of it in progress. */
function activeOf(storage: StoredStorage, backup: StorageSurroundings['backup']): StorageView['active_operation'] {
  const own = namedTarget('storage', storage)
  const operation = activeOperationOf(storage)
  if (operation !== undefined) return toOperationView(operation, own, carrierOf(storage.spec.operation))
  return backup === undefined
    ? null
    : toOperationView(backup.operation, { type: 'backup', id: backup.id, name: undefined }, own)
}

/** The contract counts custom images among the templates. */
const sourceViewOf = ({ kind, id }: StorageSource): NonNullable<StorageView['source']> => ({
  kind: kind === 'image' ? 'template' : kind,
  id,
})

const storageStateOf = ({ isDeleting, status }: StoredStorage): StorageView['state'] =>
  isDeleting ? 'deleting' : (status?.state ?? 'creating')

export function storageFactsOf(storage: StoredStorage): StorageFacts {
  const { name, spec, status, isDeleting } = storage
  const operation = activeOperationOf(storage)
  return {
    id: name,
    state: storageStateOf(storage),
    isBoot: spec.isBoot,
    isProtected: spec.isProtected,
    isDeleting,
    serverId: spec.serverId ?? status?.serverId,
    sizeGibibytes: spec.sizeGibibytes,
    activeOperation: operation === undefined ? undefined : { id: operation.id, kind: operation.kind },
  }
}

export const CreateStorage = z
  .strictObject({
    zone: ZoneName.optional().describe('Optional with a source: defaults to the zone of the source.'),
    title: Title.default(''),
    size_gibibytes: DiskGibibytes.optional().describe(
      'At least the size of the source, which is the default; required without a source.',
    ),
    tier: z
      .enum(STORAGE_TIERS)
      .default('standard')
      .describe(
        'standard survives the loss of its host in zones with shared storage; local-nvme is on the disks of one host.',
      ),
    source_backup_id: Id.nullish(),
    source_snapshot_id: Id.nullish(),
    source_storage_id: Id.nullish(),
    server_id: Id.nullish().describe('Server in the zone to attach it to at creation.'),
    labels: Labels.default({}),
    backup_schedule: BackupSchedule.nullish(),
    backup_retention_days: RetentionDays.default(BACKUP_RETENTION_DAYS_DEFAULT),
    is_protected: z.boolean().default(false),
  })
  .meta({ id: 'CreateStorage' })
export type CreateStorage = z.infer<typeof CreateStorage>

export const UpdateStorage = z
  .strictObject({
    title: Title.optional(),
    labels: Labels.optional(),
    backup_schedule: BackupSchedule.nullish(),
    backup_copy_zone: ZoneName.nullish().describe('Another zone of the region; null for no copies.'),
    backup_retention_days: RetentionDays.optional(),
    is_protected: z.boolean().optional(),
  })
  .meta({ id: 'UpdateStorage' })
export type UpdateStorage = z.infer<typeof UpdateStorage>

const verbs = verbsOf({ path: '/v1/storages', noun: 'storage', view: StorageView })

export const listStorages = verbs.list('list_storages', {
  summary: 'List storages',
  description: 'Newest first, including boot storages. A storage must have every given label.',
  clusterScopes: ['storages'],
  query: PageQuery.extend({ zone: ZoneName.optional(), server_id: Id.optional(), label: LabelFilters }),
})

export const createStorage = verbs.create('create_storage', {
  summary: 'Create a storage',
  description:
    'Empty, or with the content of one source at the time of creation. The source may be deleted after the ' +
    'storage is online.',
  clusterScopes: ['storages'],
  needs: 'standing',
  starts: ['storage.create'],
  body: CreateStorage,
  example: { zone: 'eu-1a', size_gibibytes: 10, title: 'Data' },
  refuses: [400, 404, 409, 422, 503],
})

export const getStorage = verbs.read('get_storage', { summary: 'Get a storage', clusterScopes: ['storages'] })

export const updateStorage = verbs.change('update_storage', {
  summary: 'Update title, labels or protection of a storage',
  description: 'labels replaces all labels. With If-Match only that version is changed.',
  body: UpdateStorage,
})

export const deleteStorage = verbs.remove('delete_storage', {
  summary: 'Delete a storage with its data',
  description: 'The storage must be detached. Its data is erased when the operation has succeeded.',
  clusterScopes: ['storages'],
  starts: ['storage.delete'],
})

export const attachStorage = verbs.post('attach_storage', '/{id}/attach', {
  summary: 'Attach a storage to a server',
  description:
    'The server may run: the disk appears in the guest and can be found by its serial. A server can have ' +
    `${DATA_STORAGES_PER_SERVER_MAXIMUM} storages besides its boot storage. Data on another host is moved to the ` +
    'host of the server first.',
  clusterScopes: ['storages'],
  starts: ['storage.attach'],
  body: z.strictObject({ server_id: Id }),
  example: { server_id: EXAMPLE.id },
  refuses: [400, 404, 409, 503],
})

export const detachStorage = verbs.post('detach_storage', '/{id}/detach', {
  summary: 'Detach a storage from its server',
  description:
    'The server may run: the operation succeeds when the guest has released the disk, and fails after a timeout. ' +
    'With force the disk is removed from the guest, which gets errors when it reads or writes.',
  clusterScopes: ['storages'],
  starts: ['storage.detach'],
  body: z.strictObject({
    force: z.boolean().default(false).describe('Whether to remove the disk from a guest that does not release it.'),
  }),
  refuses: [404, 409],
})

export const resizeStorage = verbs.post('resize_storage', '/{id}/resize', {
  summary: 'Grow a storage',
  description: 'The server may run: the guest sees the larger disk immediately. A storage never shrinks.',
  clusterScopes: ['storages'],
  needs: 'standing',
  starts: ['storage.resize'],
  body: z.strictObject({ size_gibibytes: DiskGibibytes }),
  example: { size_gibibytes: 20 },
  refuses: [400, 404, 409, 422, 503],
})

export const STORAGE_ROUTES = [
  listStorages,
  createStorage,
  getStorage,
  updateStorage,
  deleteStorage,
  attachStorage,
  detachStorage,
  resizeStorage,
] as const
