/** Snapshots: their changes are in `changes/snapshot.ts`. */
import { type SnapshotFacts, requireSnapshottable } from '../../../domain/snapshot/rules.ts'
import type { KubeObject } from '../../../kit/kube/object.ts'
import { Zone } from '../../../resources/catalog/index.ts'
import {
  Snapshot,
  type SnapshotSpec,
  type SnapshotStatus,
  type SnapshotSurroundings,
  type SnapshotView,
  createSnapshot,
  getSnapshot,
  listSnapshots,
  snapshotFactsOf,
  toSnapshotView,
} from '../../../resources/snapshot/index.ts'
import { Storage, storageFactsOf } from '../../../resources/storage/index.ts'
import { type OperatedObjects, openOperated } from '../../kit/change/operate.ts'
import { type ObjectParts, getObject, listObjects } from '../../kit/plain/objects.ts'
import type { StorageObject } from '../../../changes/kit/source.ts'
import { requireStayingWith, snapshotChanges } from '../../../changes/snapshot.ts'
import { isMachineId } from '../../../domain/managed-machine/rules.ts'
import { notFound } from '../../../domain/problem.ts'
import type { Answer, Call, Customer } from '../../../kit/http/call.ts'
import { customerEndpoint } from '../../../kit/http/endpoint.ts'
import { accountNamespace } from '../../../resources/index.ts'
import { storedOf } from '../../../resources/kit/shapes.ts'
import { Server } from '../../../resources/server/index.ts'
import { admissionOf } from '../../kit/admission/changes.ts'
import { kind } from '../../kit/admission/kind.ts'
import { makerOf } from '../../kit/create.ts'
import { keysOf, objectFeed, sourceOf, zonesOf } from '../../kit/feed.ts'
import { noun } from '../../kit/noun.ts'
import type { Parts } from '../../kit/parts.ts'
import { changeEndpoints } from '../../kit/rest.ts'

type SnapshotObject = KubeObject<SnapshotSpec, SnapshotStatus>
type Snapshots = OperatedObjects<SnapshotSpec, SnapshotStatus, SnapshotView, SnapshotFacts>

function openSnapshots(parts: ObjectParts): Snapshots {
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

type SnapshotParts = Parts & { readonly snapshots: Snapshots }

export const snapshot = noun<SnapshotParts, { readonly snapshots: Snapshots }>({
  name: 'snapshot',
  kinds: [kind(Snapshot, { access: 'write', target: 'snapshot', admission: admissionOf(snapshotChanges) })],
  open: (parts) => ({ snapshots: openSnapshots(parts) }),
  endpoints: ({ snapshots, ...parts }) => [
    getObject(snapshots, getSnapshot),
    listObjects(parts, snapshots, listSnapshots, ({ storage_id }) => ({ fields: { storage_id } })),
    customerEndpoint(createSnapshot, (call) => create({ snapshots, ...parts }, call)),
    ...changeEndpoints(parts, snapshotChanges, snapshots),
  ],
  feeds: ({ snapshots, caches }) => [
    objectFeed('snapshot', listSnapshots, snapshots, [
      sourceOf(
        caches.of(Storage),
        ({ metadata: { namespace, name } }) => keysOf(snapshots.cache.by('storage_id', `${namespace ?? ''}\n${name}`)),
        { part: ({ spec }) => spec.zone },
      ),
      zonesOf(caches),
    ]),
  ],
})

async function create(
  { snapshots, ...parts }: SnapshotParts,
  call: Call<typeof createSnapshot, Customer>,
): Promise<Answer> {
  const {
    caller: { accountId },
    params: { id: storageId },
    body: { title, labels },
  } = call
  const readStorage = () => readSnapshottableStorage(parts, accountId, storageId)
  return makerOf(parts, snapshotChanges, snapshots)(
    call,
    { storageId, title, labels },
    {
      storage: await readStorage(),
      // Whatever ended the disk before it was held is visible once it is.
      requireStill: async () => void (await readStorage()),
    },
  )
}

/** Throws 404, and 409 unless a snapshot of it can be created now. */
async function readSnapshottableStorage(
  { caches, store }: Parts,
  accountId: string,
  id: string,
): Promise<StorageObject> {
  const namespace = accountNamespace(accountId)
  const storage = await store.get(Storage, { namespace, name: id })
  if (storage === undefined || isMachineId(id)) throw notFound('storage')
  requireSnapshottable(storageFactsOf(storedOf(storage)), storage.spec.tier)
  const { isBoot, serverId } = storage.spec
  const server = isBoot && serverId !== undefined ? await store.get(Server, { namespace, name: serverId }) : undefined
  requireStayingWith(server, storage)
  caches.of(Storage).apply(storage)
  if (server !== undefined) caches.of(Server).apply(server)
  return storage
}
