/** Public shape and routes of snapshots, and the conversion from the stored shape. */
import { z } from 'zod'
import type { SnapshotFacts } from '../../domain/snapshot/rules.ts'
import { activeOperationOf, OperationView, toOperationView } from '../operation/index.ts'
import { DateTime, Id, Labels, PageQuery, Printable, type Stored } from '../kit/shapes.ts'
import { routesUnder, verbsOf } from '../kit/verbs.ts'
import { viewOf } from '../kit/view.ts'
import { SNAPSHOT_STATES, type SnapshotSpec, type SnapshotStatus } from './stored.ts'

const AREA = 'Block storage, backups, custom images'

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
    active_operation: operation === undefined ? null : toOperationView(operation, { type: 'snapshot', id: name }),
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
  .strictObject({ title: Printable.max(255).default(''), labels: Labels.default({}) })
  .meta({ id: 'CreateSnapshot' })

const ofStorages = routesUnder({ path: '/v1/storages', area: AREA })

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

const verbs = verbsOf({ path: '/v1/snapshots', area: AREA, noun: 'snapshot', view: SnapshotView })

export const listSnapshots = verbs.list('list_snapshots', {
  summary: 'List snapshots',
  description: 'Newest first.',
  clusterScopes: ['storages'],
  query: PageQuery.extend({ storage_id: Id.optional() }),
})

export const getSnapshot = verbs.read('get_snapshot', { summary: 'Get a snapshot', clusterScopes: ['storages'] })

export const deleteSnapshot = verbs.remove('delete_snapshot', {
  summary: 'Delete a snapshot',
  description:
    'Space that only this snapshot used is free after the operation has succeeded. Storages created from it stay.',
  clusterScopes: ['storages'],
  starts: ['snapshot.delete'],
})

export const SNAPSHOT_ROUTES = [createSnapshot, listSnapshots, getSnapshot, deleteSnapshot] as const
