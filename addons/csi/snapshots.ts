/** Snapshots of volumes, which are stored in the disks of their storages. */
import { type Client, unwrap, waitForOperation } from '../../client/index.ts'
import { orNothing } from '../platform.ts'
import type {
  ControllerService,
  CreateSnapshotRequest,
  ListSnapshotsRequest,
  CsiSnapshot as Answer,
} from './messages.ts'
import { Refused, required } from './refusal.ts'
import {
  type ClusterStorages,
  findSnapshot,
  GIBIBYTE,
  storageLabels,
  makeOnce,
  itemsPage,
  readSnapshot,
  requireOwn,
  requireStorage,
  titleOf,
  type Snapshot,
} from './storages.ts'

const SECOND_MILLISECONDS = 1_000
/** Prefix of parameters that the snapshotter adds, and the parameters for a title. */
const SNAPSHOTTER = 'csi.storage.k8s.io/'
const OBJECT = ['namespace', 'name'].map((part) => `${SNAPSHOTTER}volumesnapshot/${part}`)

const answerOf = ({ id, size_gibibytes, storage_id, created_at, state }: Snapshot): Answer => ({
  sizeBytes: size_gibibytes * GIBIBYTE,
  snapshotId: id,
  sourceVolumeId: storage_id,
  creationTime: { seconds: Math.floor(Date.parse(created_at) / SECOND_MILLISECONDS), nanos: 0 },
  readyToUse: state === 'online',
})

/** The caller must prevent concurrent requests for the same name. */
export async function createSnapshot(storages: ClusterStorages, request: CreateSnapshotRequest): Promise<Answer> {
  const { client, clusterId } = storages
  const { name, sourceVolumeId: id, parameters } = request
  required(id, 'source_volume_id')
  const strange = Object.keys(parameters).filter((key) => !key.startsWith(SNAPSHOTTER))
  if (strange.length > 0) throw new Refused('INVALID_ARGUMENT', `unknown parameters: ${strange.join(', ')}`)
  const found = await findSnapshot(storages, name)
  if (found !== undefined && found.storage_id !== id)
    throw new Refused('ALREADY_EXISTS', `snapshot ${name} is there, of the volume ${found.storage_id}`)
  if (found !== undefined) return answerOf(await whole(storages, found))
  await requireStorage(storages, id)
  const { snapshot, operation } = await makeOnce({
    text: `csi-snapshot/${clusterId}/${id}/${name}`,
    post: (key) =>
      client.POST('/v1/storages/{id}/snapshots', {
        params: { path: { id } },
        headers: { 'idempotency-key': key },
        body: { title: titleOf(parameters, OBJECT) ?? name, labels: storageLabels(storages, name) },
      }),
    isThere: async (answer) => (await readSnapshot(client, answer.snapshot.id)) !== undefined,
  })
  await waitForOperation(client, operation.id)
  return answerOf((await readSnapshot(client, snapshot.id)) ?? snapshot)
}

/** Deletes a failed snapshot, so that the next call takes it again. */
async function whole(storages: ClusterStorages, found: Snapshot): Promise<Snapshot> {
  const { client } = storages
  if (found.active_operation !== null) await waitForOperation(client, found.active_operation.id)
  const snapshot = await readSnapshot(client, found.id)
  if (snapshot === undefined) throw new Refused('ABORTED', 'the snapshot is being deleted')
  if (snapshot.state !== 'error') return snapshot
  await deleteSnapshot(storages, snapshot.id)
  throw new Refused('INTERNAL', `the snapshot ${snapshot.id} could not be taken`)
}

/** Does nothing when it does not exist. Throws when the cluster has not taken it. */
export async function deleteSnapshot(storages: ClusterStorages, id: string): Promise<void> {
  const { client } = storages
  const snapshot = await readSnapshot(client, id)
  if (snapshot === undefined) return
  requireOwn(storages, snapshot)
  if (snapshot.active_operation !== null) throw new Refused('ABORTED', `a change of the snapshot ${id} is under way`)
  const deleting = await orNothing(unwrap(client.DELETE('/v1/snapshots/{id}', { params: { path: { id } } })))
  if (deleting !== undefined) await waitForOperation(client, deleting.operation.id)
}

/** Snapshots of the account, with the volumes that they belong to. */
export async function listSnapshots(
  client: Client,
  { snapshotId, sourceVolumeId, ...page }: ListSnapshotsRequest,
): ReturnType<ControllerService['ListSnapshots']> {
  if (snapshotId !== '') {
    const snapshot = await readSnapshot(client, snapshotId)
    const isMeant = snapshot !== undefined && (sourceVolumeId === '' || snapshot.storage_id === sourceVolumeId)
    return { entries: isMeant ? [{ snapshot: answerOf(snapshot) }] : [], nextToken: '' }
  }
  const of = sourceVolumeId === '' ? {} : { storage_id: sourceVolumeId }
  const { items, nextToken } = await itemsPage(page, (query) =>
    unwrap(client.GET('/v1/snapshots', { params: { query: { ...query, ...of } } })),
  )
  return { entries: items.map((snapshot) => ({ snapshot: answerOf(snapshot) })), nextToken }
}
