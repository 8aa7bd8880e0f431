/** Creating, reading and deleting snapshots. */
import { isMachineId } from '../../../domain/managed-machine/rules.ts'
import { requireDeletableSnapshot, requireSnapshottable } from '../../../domain/snapshot/rules.ts'
import { notFound } from '../../../domain/problem.ts'
import { claimSnapshot, releaseSnapshot } from '../../../db/snapshot/index.ts'
import type { Answer, Call, Customer } from '../../../kit/http/call.ts'
import { customerEndpoint, type Endpoint } from '../../../kit/http/endpoint.ts'
import { finalizerOf } from '../../../resources/kit/define.ts'
import { accountNamespace } from '../../../resources/index.ts'
import { Server } from '../../../resources/server/index.ts'
import {
  Snapshot,
  createSnapshot,
  deleteSnapshot,
  getSnapshot,
  listSnapshots,
  type SnapshotSpec,
} from '../../../resources/snapshot/index.ts'
import { diskGibibytesOf, Storage, storageFactsOf } from '../../../resources/storage/index.ts'
import { create } from '../../kit/change/create.ts'
import { operate } from '../../kit/change/operate.ts'
import { storedOf } from '../../../resources/kit/shapes.ts'
import type { Parts } from '../../kit/parts.ts'
import { getObject, listObjects } from '../../kit/plain/objects.ts'
import { heldOf } from '../../../changes/kit/source.ts'
import { isCloned, requireStayingWith, type StorageObject } from './rules.ts'
import type { Snapshots } from './objects.ts'

export type SnapshotParts = Parts & { readonly snapshots: Snapshots }

export const snapshotEndpoints = (parts: SnapshotParts): readonly Endpoint[] => [
  getObject(parts.snapshots, getSnapshot),
  listObjects(parts, parts.snapshots, listSnapshots, ({ storage_id }) => ({ fields: { storage_id } })),
  customerEndpoint(createSnapshot, (call) => createEndpoint(parts, call)),
  customerEndpoint(deleteSnapshot, (call) => remove(parts, call)),
]

async function createEndpoint(
  { snapshots, ...parts }: SnapshotParts,
  call: Call<typeof createSnapshot, Customer>,
): Promise<Answer> {
  const {
    caller: { accountId },
    params: { id: storageId },
    body: { title, labels },
  } = call
  const storage = await readSnapshottable(parts, accountId, storageId)
  return create(parts, snapshots, call, {
    kind: 'snapshot.create',
    finalizer: finalizerOf(Snapshot),
    detail: { storage_id: storageId },
    specOf: (operation): SnapshotSpec => ({ storageId, title, labels, operation }),
    claim: (tx, snapshotId) =>
      claimSnapshot(tx, { accountId, snapshotId, sizeGibibytes: diskGibibytesOf(storage), ...heldOf(storage) }),
    release: (tx, snapshotId) => releaseSnapshot(tx, { accountId, snapshotId }),
    // Whatever ended the disk before it was held is visible by now.
    validate: async () => void (await readSnapshottable(parts, accountId, storageId)),
  })
}

/** Throws 404, and 409 unless a snapshot of it can be created. */
async function readSnapshottable({ store }: Parts, accountId: string, storageId: string): Promise<StorageObject> {
  const namespace = accountNamespace(accountId)
  const storage = await store.get(Storage, { namespace, name: storageId })
  if (storage === undefined || isMachineId(storageId)) throw notFound('storage')
  requireSnapshottable(storageFactsOf(storedOf(storage)), storage.spec.tier)
  const { isBoot, serverId } = storage.spec
  const server = isBoot && serverId !== undefined ? await store.get(Server, { namespace, name: serverId }) : undefined
  requireStayingWith(server, storage)
  return storage
}

function remove({ snapshots, ...parts }: SnapshotParts, call: Call<typeof deleteSnapshot, Customer>): Promise<Answer> {
  const {
    caller: { accountId },
    params: { id },
  } = call
  return operate(parts, snapshots, call, {
    kind: 'snapshot.delete',
    validate: (snapshot) => requireDeletableSnapshot(snapshot, isCloned(parts.caches, accountNamespace(accountId), id)),
    spec: {},
  })
}
