/** Snapshots for requests, with what their view takes from their storage. */
import type { SnapshotFacts } from '../../../domain/snapshot/rules.ts'
import type { KubeObject } from '../../../kit/kube/object.ts'
import { Zone } from '../../../resources/catalog/index.ts'
import {
  Snapshot,
  snapshotFactsOf,
  type SnapshotSpec,
  type SnapshotStatus,
  type SnapshotSurroundings,
  type SnapshotView,
  toSnapshotView,
} from '../../../resources/snapshot/index.ts'
import { Storage } from '../../../resources/storage/index.ts'
import { type OperatedObjects, openOperated } from '../../kit/change/operate.ts'
import type { ObjectParts } from '../../kit/plain/objects.ts'

export type SnapshotObject = KubeObject<SnapshotSpec, SnapshotStatus>
export type Snapshots = OperatedObjects<SnapshotSpec, SnapshotStatus, SnapshotView, SnapshotFacts>

export function openSnapshots(parts: ObjectParts): Snapshots {
  const [zones, storages] = [parts.caches.of(Zone), parts.caches.of(Storage)]
  return openOperated(parts, {
    name: 'snapshot',
    title: 'snapshot',
    resource: Snapshot,
    surroundingsOf: ({ metadata: { namespace = '' }, spec }: SnapshotObject): SnapshotSurroundings => {
      const zone = storages.get({ namespace, name: spec.storageId })?.spec.zone
      return { zone, region: zones.get({ name: zone ?? '' })?.spec.region }
    },
    toView: toSnapshotView,
    factsOf: snapshotFactsOf,
    labelsOf: ({ labels }) => labels,
    fields: { storage_id: ({ storageId }) => storageId },
  })
}
