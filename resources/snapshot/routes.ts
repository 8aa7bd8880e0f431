/** Snapshots as the API shows them: public shape, bridge from the stored one, routes. */
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
    storage_id: z.string().describe('The storage that it is a point of, which is not deleted before it.'),
    title: z.string(),
    state: z.enum(SNAPSHOT_STATES).describe('Storages are made from one that is online.'),
    size_gibibytes: z.int().describe('Size of the storage at that point; 0 until it is online.'),
    used_bytes: z
      .int()
      .nullable()
      .describe('Room that it alone takes, as measured now and then; null where the host cannot tell.'),
    labels: z.record(z.string(), z.string()),
    active_operation: OperationView.nullable(),
    created_at: DateTime,
  })
  .meta({ id: 'Snapshot' })
export type SnapshotView = z.infer<typeof SnapshotView>
export type StoredSnapshot = Stored<SnapshotSpec, SnapshotStatus>

/** What the view takes from its storage, until the snapshot has it by itself. */
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
  summary: 'Take a snapshot of a storage',
  description:
    'The point that the storage is at, kept in its disk: it takes a moment, and room for what is written from then ' +
    'on. Its server may run. The storage is not deleted while it has snapshots, and one that is on the disks of a ' +
    'single host stays on that host, with its server. Storages of tier local-nvme have none.',
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

export const getSnapshot = verbs.read('get_snapshot', { summary: 'Read a snapshot', clusterScopes: ['storages'] })

export const deleteSnapshot = verbs.remove('delete_snapshot', {
  summary: 'Delete a snapshot',
  description: 'What it alone kept is free when the operation has succeeded. Storages that were made from it stay.',
  clusterScopes: ['storages'],
  starts: ['snapshot.delete'],
})

export const SNAPSHOT_ROUTES = [createSnapshot, listSnapshots, getSnapshot, deleteSnapshot] as const
