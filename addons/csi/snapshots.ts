/** Snapshots of volumes: points that are kept in the disks of their storages. */
import { type Client, unwrap, waitForOperation } from '../../client/index.ts'
import { orNothing } from '../platform.ts'
import type { ControllerService, CreateSnapshotRequest, ListSnapshotsRequest, Snapshot as Answer } from './messages.ts'
import { Refused, required } from './refusal.ts'
import {
  type ClusterStorages,
  findSnapshot,
  GIBIBYTE,
  labelsOf,
  makeOnce,
  pageOf,
  readSnapshot,
  requireOwn,
  requireStorage,
  titleOf,
  type Snapshot,
} from './storages.ts'

const SECOND_MILLISECONDS = 1_000
/** Of parameters that the snapshotter adds, and what a title is made of. */
const SNAPSHOTTER = 'csi.storage.k8s.io/'
const OBJECT = ['namespace', 'name'].map((part) => `${SNAPSHOTTER}volumesnapshot/${part}`)

const answerOf = ({ id, size_gibibytes, storage_id, created_at, state }: Snapshot): Answer => ({
  sizeBytes: size_gibibytes * GIBIBYTE,
  snapshotId: id,
  sourceVolumeId: storage_id,
  creationTime: { seconds: Math.floor(Date.parse(created_at) / SECOND_MILLISECONDS), nanos: 0 },
  readyToUse: state === 'online',
})

/** The caller sees to it that nobody else asks for that name meanwhile. */
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
        body: { title: titleOf(parameters, OBJECT) ?? name, labels: labelsOf(storages, name) },
      }),
    isThere: async (answer) => (await readSnapshot(client, answer.snapshot.id)) !== undefined,
  })
  await waitForOperation(client, operation.id)
  return answerOf((await readSnapshot(client, snapshot.id)) ?? snapshot)
}

/** One that could not be taken goes, so that the next call takes it. */
async function whole(storages: ClusterStorages, found: Snapshot): Promise<Snapshot> {
  const { client } = storages
  if (found.active_operation !== null) await waitForOperation(client, found.active_operation.id)
  const snapshot = await readSnapshot(client, found.id)
  if (snapshot === undefined) throw new Refused('ABORTED', 'the snapshot is being deleted')
  if (snapshot.state !== 'error') return snapshot
  await deleteSnapshot(storages, snapshot.id)
  throw new Refused('INTERNAL', `the snapshot ${snapshot.id} could not be taken`)
}

/** Free for one that is not there. Throws for one that the cluster has not taken, whoever names it. */
export async function deleteSnapshot(storages: ClusterStorages, id: string): Promise<void> {
  const { client } = storages
  const snapshot = await readSnapshot(client, id)
  if (snapshot === undefined) return
  requireOwn(storages, snapshot)
  if (snapshot.active_operation !== null) throw new Refused('ABORTED', `a change of the snapshot ${id} is under way`)
  const deleting = await orNothing(unwrap(client.DELETE('/v1/snapshots/{id}', { params: { path: { id } } })))
  if (deleting !== undefined) await waitForOperation(client, deleting.operation.id)
}

/** Those of the account: they name the volumes that they are of. */
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
  const { items, nextToken } = await pageOf(page, (query) =>
    unwrap(client.GET('/v1/snapshots', { params: { query: { ...query, ...of } } })),
  )
  return { entries: items.map((snapshot) => ({ snapshot: answerOf(snapshot) })), nextToken }
}
