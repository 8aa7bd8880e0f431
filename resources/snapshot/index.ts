/** Snapshot: one point in time of a storage, kept in its disk. Stored shape, public shape, conversion and routes. */
import { z } from 'zod'
import { resource } from '../kit/define.ts'
import {
  DateTime,
  Id,
  Labels,
  PageQuery,
  ReportedOperation,
  RequestedOperation,
  type Stored,
  StoredLabels,
} from '../kit/shapes.ts'
import type { SnapshotFacts } from '../../domain/snapshot/rules.ts'
import { OperationView, activeOperationOf, namedTarget, toOperationView } from '../operation/index.ts'
import { routesUnder, verbsOf } from '../kit/verbs.ts'
import { managed } from '../kit/managed.ts'
import { viewOf } from '../kit/view.ts'
import { ObjectName, OBSERVED, StoredTitle, Title } from '../kit/fields.ts'
import { AGE, READY, STATE } from '../kit/columns.ts'

export const SNAPSHOT_STATES = ['creating', 'online', 'error', 'deleting'] as const

export const Snapshot = resource({
  kind: 'Snapshot',
  plural: 'snapshots',
  shortNames: ['snap'],
  scope: 'Namespaced',
  customers: 'write',
  description:
    'One point in time of a storage, kept in its disk. Create the object with spec.storageId to take the ' +
    'snapshot, and delete it to delete the snapshot. Storages refer to it in spec.source. A storage cannot be ' +
    'deleted while it has snapshots.',
  spec: z
    .strictObject({
      storageId: z.string().min(1).max(253).describe('Name of the Storage.'),
      title: StoredTitle.default('').describe('Title: one line of free text.'),
      labels: StoredLabels.default({}).describe('Labels, as in the API.'),
      restoredBackupId: ObjectName.optional().describe(
        'Backup whose restore it preceded. Such a snapshot does not prevent the deletion of its storage, and ' +
          'is deleted with it. Written by the platform only.',
      ),
      expiresAt: z
        .string()
        .max(64)
        .meta({ format: 'date-time' })
        .optional()
        .describe('Time when the platform deletes it; absent for never. Written by the platform only.'),
      operation: RequestedOperation,
    })
    .describe('The desired state of the snapshot.'),
  status: z
    .strictObject({
      ...OBSERVED,
      state: z.enum(SNAPSHOT_STATES).describe('State of the snapshot, as in the API.'),
      stateDetail: z.string().max(1024).optional().describe('Human-readable reason for the state.'),
      zone: z.string().max(63).optional().describe('Zone of the storage.'),
      region: z.string().max(63).optional().describe('Region of the zone.'),
      sizeGibibytes: z.int().optional().describe('Size of the storage at that point, in GiB.'),
      isFrozen: z
        .boolean()
        .optional()
        .describe('Whether the file systems of the guest were frozen. Otherwise the disk is as after a power loss.'),
      usedBytes: z
        .int()
        .min(0)
        .optional()
        .describe('Space used by it alone, in bytes; absent when the host does not know.'),
      operation: ReportedOperation,
    })
    .describe('Observed state of the snapshot. Written by its controller.'),
  columns: [
    { name: 'Storage', type: 'string', jsonPath: '.spec.storageId' },
    STATE,
    { name: 'Size', type: 'integer', jsonPath: '.status.sizeGibibytes' },
    READY,
    AGE,
  ],
  selectableFields: ['.spec.storageId'],
  fixed: ['storageId', 'restoredBackupId', 'expiresAt'],
})
/** Taken by the platform before a restore. */
export const isForSafety = ({ restoredBackupId }: SnapshotSpec): boolean => restoredBackupId !== undefined

export type SnapshotSpec = z.infer<typeof Snapshot.spec>
export type SnapshotStatus = z.infer<typeof Snapshot.status>

export const SnapshotView = z
  .strictObject({
    id: z.string(),
    zone: z.string(),
    region: z.string(),
    storage_id: z.string().describe('Storage of the snapshot; it cannot be deleted before the snapshot.'),
    title: z.string(),
    state: z.enum(SNAPSHOT_STATES).describe('Storages can be created from an online snapshot.'),
    size_gibibytes: z.int().describe('Size of the storage at that point; 0 until it is online.'),
    used_bytes: z
      .int()
      .nullable()
      .describe('Space used by it alone, measured periodically; null when the host does not know.'),
    labels: z.record(z.string(), z.string()),
    active_operation: OperationView.nullable(),
    created_at: DateTime,
  })
  .meta({ id: 'Snapshot' })
export type SnapshotView = z.infer<typeof SnapshotView>
export type StoredSnapshot = Stored<SnapshotSpec, SnapshotStatus>

/** Facts of its storage that the view needs, until the snapshot has them itself. */
export interface SnapshotSurroundings {
  readonly zone: string | undefined
  readonly region: string | undefined
}

const stateOf = ({ isDeleting, spec, status }: StoredSnapshot): SnapshotView['state'] =>
  isDeleting || spec.operation?.kind === 'snapshot.delete' ? 'deleting' : (status?.state ?? 'creating')

export function toSnapshotView(snapshot: StoredSnapshot, { zone, region }: SnapshotSurroundings): SnapshotView {
  const { name, spec, status, createdAt } = snapshot
  const operation = activeOperationOf(snapshot)
  return viewOf(SnapshotView, spec, {
    id: name,
    zone: status?.zone ?? zone ?? '',
    region: status?.region ?? region ?? '',
    state: stateOf(snapshot),
    size_gibibytes: status?.sizeGibibytes ?? 0,
    used_bytes: status?.usedBytes ?? null,
    active_operation: operation === undefined ? null : toOperationView(operation, namedTarget('snapshot', snapshot)),
    created_at: createdAt,
  })
}

export function snapshotFactsOf(snapshot: StoredSnapshot): SnapshotFacts {
  const operation = activeOperationOf(snapshot)
  return {
    id: snapshot.name,
    state: stateOf(snapshot),
    activeOperation: operation === undefined ? undefined : { id: operation.id, kind: operation.kind },
  }
}

export const CreateSnapshot = z
  .strictObject({ title: Title.default(''), labels: Labels.default({}) })
  .meta({ id: 'CreateSnapshot' })

export const UpdateSnapshot = z
  .strictObject({ title: Title.optional(), labels: Labels.optional() })
  .meta({ id: 'UpdateSnapshot' })

const ofStorages = routesUnder({ path: '/v1/storages' })

export const createSnapshot = ofStorages.post('create_snapshot', '/{id}/snapshots', {
  summary: 'Create a snapshot of a storage',
  description:
    'Keeps the current state of the storage in its disk. It takes a moment, and needs space for later writes. The ' +
    'server may run. The storage cannot be deleted while it has snapshots. A storage with snapshots on the disks ' +
    'of a single host stays on that host, together with its server. Storages of tier local-nvme do not support ' +
    'snapshots.',
  clusterScopes: ['storages'],
  needs: 'standing',
  starts: ['snapshot.create'],
  body: CreateSnapshot,
  answers: { 202: z.strictObject({ snapshot: SnapshotView, operation: OperationView }) },
  refuses: [400, 404, 409, 422, 503],
})

const verbs = verbsOf({ path: '/v1/snapshots', noun: 'snapshot', view: SnapshotView })

export const listSnapshots = verbs.list('list_snapshots', {
  summary: 'List snapshots',
  description: 'Newest first.',
  clusterScopes: ['storages'],
  query: PageQuery.extend({ storage_id: Id.optional().describe('Returns only snapshots of this storage.') }),
})

export const getSnapshot = verbs.read('get_snapshot', { summary: 'Get a snapshot', clusterScopes: ['storages'] })

export const updateSnapshot = verbs.change('update_snapshot', {
  summary: 'Change the title and labels of a snapshot',
  body: UpdateSnapshot,
  example: { title: 'before the upgrade', labels: { release: '2' } },
})

export const deleteSnapshot = verbs.remove('delete_snapshot', {
  summary: 'Delete a snapshot',
  description:
    'Space that only this snapshot used is free after the operation has succeeded. Storages created from it stay.',
  clusterScopes: ['storages'],
  starts: ['snapshot.delete'],
})

export const SNAPSHOT_ROUTES = [createSnapshot, listSnapshots, getSnapshot, updateSnapshot, deleteSnapshot] as const

export const managedSnapshot = managed({
  noun: 'snapshot',
  view: SnapshotView,
  routes: { list: listSnapshots, create: createSnapshot, read: getSnapshot, remove: deleteSnapshot },
  parent: { field: 'storage_id', refers: 'storage', parameter: 'id' },
  names: ['title'],
  changes: [{ by: updateSnapshot, sets: ['title', 'labels'] }],
  facts: ['id', 'zone', 'region', 'size_gibibytes', 'created_at'],
  moments: ['state', 'used_bytes', 'active_operation'],
})
