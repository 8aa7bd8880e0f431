/** The Controller service: volumes are storages of the account, nodes are its servers. It has no state: a repeated call
 *  gets the platform's current state. */
import { type Client, pages, SvccloudError, unwrap, waitForOperation } from '../../client/index.ts'
import { DATA_STORAGES_PER_SERVER_MAXIMUM } from '../../domain/storage/rules.ts'
import { orNothing } from '../platform.ts'
import { oneAtATime } from './busy.ts'
import { faultOf, requireCapabilities, requireCapability } from './capabilities.ts'
import { createVolume, volumeGibibytes, volumeTier, volumeOf } from './create-volume.ts'
import type {
  ControllerService,
  ExpandAnswer,
  ExpandRequest,
  PublishRequest,
  ValidateAnswer,
  ValidateRequest,
} from './messages.ts'
import { Refused, required } from './refusal.ts'
import { createSnapshot, deleteSnapshot, listSnapshots } from './snapshots.ts'
import {
  type ClusterStorages,
  GIBIBYTE,
  idleStorage,
  isOwn,
  storageLabels,
  itemsPage,
  requireOwn,
  requireStorage,
} from './storages.ts'

const CAPABILITIES = [
  'CREATE_DELETE_VOLUME',
  'PUBLISH_UNPUBLISH_VOLUME',
  'LIST_VOLUMES',
  'LIST_VOLUMES_PUBLISHED_NODES',
  'CREATE_DELETE_SNAPSHOT',
  'LIST_SNAPSHOTS',
  'CLONE_VOLUME',
  'EXPAND_VOLUME',
  'SINGLE_NODE_MULTI_WRITER',
] as const

export function controllerService(storages: ClusterStorages): ControllerService {
  const { client } = storages
  const once = oneAtATime()
  return {
    CreateVolume: (request) =>
      once(required(request.name, 'name'), async () => ({ volume: await createVolume(storages, request) })),
    async DeleteVolume({ volumeId }) {
      await once(required(volumeId, 'volume_id'), () => deleteVolume(storages, volumeId))
      return {}
    },
    async ControllerPublishVolume(request) {
      required(request.nodeId, 'node_id')
      requireCapability(request.volumeCapability)
      return once(required(request.volumeId, 'volume_id'), () => publish(storages, request))
    },
    async ControllerUnpublishVolume({ volumeId, nodeId }) {
      await once(required(volumeId, 'volume_id'), () => unpublish(storages, volumeId, nodeId))
      return {}
    },
    ValidateVolumeCapabilities: (request) => validate(storages, request),
    async ListVolumes(page) {
      const [label] = Object.entries(storageLabels(storages, '')).map(([key, value]) => `${key}=${value}`)
      const { items, nextToken } = await itemsPage(page, (query) =>
        unwrap(client.GET('/v1/storages', { params: { query: { ...query, label: [label ?? ''] } } })),
      )
      return {
        entries: items.map((storage) => ({
          volume: volumeOf(storage),
          status: { publishedNodeIds: storage.server_id === null ? [] : [storage.server_id] },
        })),
        nextToken,
      }
    },
    ControllerGetCapabilities: async () => ({ capabilities: CAPABILITIES.map((type) => ({ rpc: { type } })) }),
    CreateSnapshot: (request) =>
      once(required(request.name, 'name'), async () => ({ snapshot: await createSnapshot(storages, request) })),
    async DeleteSnapshot({ snapshotId }) {
      await once(required(snapshotId, 'snapshot_id'), () => deleteSnapshot(storages, snapshotId))
      return {}
    },
    ListSnapshots: (request) => listSnapshots(client, request),
    ControllerExpandVolume: (request) => once(required(request.volumeId, 'volume_id'), () => expand(storages, request)),
  }
}

/** Does nothing when it does not exist. Throws when the cluster has not created it. */
async function deleteVolume(storages: ClusterStorages, id: string): Promise<void> {
  const { client } = storages
  const storage = await idleStorage(client, id)
  if (storage === undefined) return
  requireOwn(storages, storage)
  const deleting = await orNothing(unwrap(client.DELETE('/v1/storages/{id}', { params: { path: { id } } })))
  if (deleting !== undefined) await waitForOperation(client, deleting.operation.id)
}

type PublishAnswer = Awaited<ReturnType<ControllerService['ControllerPublishVolume']>>

async function publish(storages: ClusterStorages, { volumeId: id, nodeId }: PublishRequest): Promise<PublishAnswer> {
  const { client } = storages
  const storage = await requireStorage(storages, id)
  await requireServer(client, nodeId)
  if (storage.server_id !== null && storage.server_id !== nodeId)
    throw new Refused('FAILED_PRECONDITION', `the volume is at node ${storage.server_id}, and at one only`)
  if (storage.server_id === null) await attach(client, id, nodeId)
  return { publishContext: { serial: storage.serial } }
}

async function attach(client: Client, id: string, serverId: string): Promise<void> {
  try {
    const attaching = client.POST('/v1/storages/{id}/attach', {
      params: { path: { id } },
      body: { server_id: serverId },
    })
    const { operation } = await unwrap(attaching)
    await waitForOperation(client, operation.id)
  } catch (error) {
    if (error instanceof SvccloudError && error.status === 409 && (await isFull(client, serverId)))
      throw new Refused('RESOURCE_EXHAUSTED', error.message)
    throw error
  }
}

/** Ids of servers. Those of nodes are not UUIDs, nor are those that people have applied. */
const SERVER_ID = /^[a-z0-9]([-a-z0-9.]{0,251}[a-z0-9])?$/

/** Throws when the server does not exist. */
async function requireServer(client: Client, id: string): Promise<void> {
  const reading = async () =>
    SERVER_ID.test(id) ? orNothing(unwrap(client.GET('/v1/servers/{id}', { params: { path: { id } } }))) : undefined
  if ((await reading()) === undefined) throw new Refused('NOT_FOUND', `there is no node ${id}`)
}

async function isFull(client: Client, serverId: string): Promise<boolean> {
  let count = 0
  const read = (query: object) => client.GET('/v1/storages', { params: { query: { ...query, server_id: serverId } } })
  for await (const { is_boot } of pages(read)) if (!is_boot) count++
  return count >= DATA_STORAGES_PER_SERVER_MAXIMUM
}

/** Detaches it from that node, or from any node when none is named. Does nothing when it does not exist, or does not
 *  belong to this cluster and so was never published here. */
async function unpublish(storages: ClusterStorages, id: string, nodeId: string): Promise<void> {
  const { client } = storages
  const storage = await idleStorage(client, id)
  if (storage === undefined || !isOwn(storages, storage)) return
  const serverId = storage.server_id
  if (serverId === null || (nodeId !== '' && serverId !== nodeId)) return
  const detaching = client.POST('/v1/storages/{id}/detach', { params: { path: { id } }, body: {} })
  const { operation } = await unwrap(detaching)
  await waitForOperation(client, operation.id)
}

async function validate(storages: ClusterStorages, request: ValidateRequest): Promise<ValidateAnswer> {
  const { volumeId, volumeCapabilities, volumeContext, parameters } = request
  required(volumeId, 'volume_id')
  if (volumeCapabilities.length === 0) requireCapabilities(volumeCapabilities)
  await requireStorage(storages, volumeId)
  volumeTier(parameters)
  const faults = volumeCapabilities.map(faultOf).filter((fault) => fault !== undefined)
  return faults.length > 0
    ? { message: faults.join('; ') }
    : { confirmed: { volumeContext, volumeCapabilities, parameters }, message: '' }
}

/** Never shrinks; a volume that is large enough stays. */
async function expand(storages: ClusterStorages, request: ExpandRequest): Promise<ExpandAnswer> {
  const { client } = storages
  const { volumeId: id, capacityRange, volumeCapability } = request
  if (capacityRange === null) throw new Refused('INVALID_ARGUMENT', 'capacity_range is missing')
  const size = volumeGibibytes(capacityRange)
  const { size_gibibytes } = await requireStorage(storages, id)
  const { limitBytes } = capacityRange
  if (limitBytes > 0 && size_gibibytes * GIBIBYTE > limitBytes)
    throw new Refused('OUT_OF_RANGE', `the volume has ${size_gibibytes} GiB already, which is above the limit`)
  if (size_gibibytes < size) {
    const resizing = client.POST('/v1/storages/{id}/resize', {
      params: { path: { id } },
      body: { size_gibibytes: size },
    })
    const { operation } = await unwrap(resizing)
    await waitForOperation(client, operation.id)
  }
  return {
    capacityBytes: Math.max(size, size_gibibytes) * GIBIBYTE,
    nodeExpansionRequired: volumeCapability?.block === undefined,
  }
}
