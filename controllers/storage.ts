/** The storage controller: a boot storage is a Volume on the node of its server. Made by the server controller, and gone before it. */
import { findPlacement } from '../db/placement.ts'
import type { Action, ConditionDraft } from '../kit/reconcile/action.ts'
import { type Key, type KubeObject } from '../kit/kube/object.ts'
import { type Reconciler, watch } from '../kit/reconcile/reconciler.ts'
import { accountOfNamespace } from '../resources/index.ts'
import { Instance, nodeNamespace, Volume, type VolumeSpec, type VolumeStatus } from '../resources/instance.ts'
import { ACCOUNT_LABEL, STORAGE_FINALIZER } from '../resources/labels.ts'
import { Zone } from '../resources/platform.ts'
import { Server } from '../resources/server.ts'
import { Storage, type StorageSpec, type StorageStatus } from '../resources/storage.ts'
import { asked } from './database.ts'
import { healthConditions } from './health.ts'
import type { Parts } from './parts.ts'

type StorageObject = KubeObject<StorageSpec, StorageStatus>

export interface Seen {
  /** Undefined when the server has no room on any node. */
  readonly node: string | undefined
  readonly region: string | undefined
  readonly volume: KubeObject<VolumeSpec, VolumeStatus> | undefined
  /** The server stays, or its guest still has the disk. */
  readonly isInUse: boolean
}

export function storageReconciler(parts: Parts): Reconciler<StorageSpec, StorageStatus, Seen> {
  const volumes = parts.caches.of(Volume)
  volumes.addIndex('storage', ({ spec }) => [spec.storage.uid])
  parts.caches.of(Instance).addIndex('volume', ({ spec }) => spec.disks.map(({ volume }) => volume))
  return {
    name: 'storage', type: Storage, finalizer: STORAGE_FINALIZER,
    watches: [
      watch(Volume, ({ spec }) => [{ namespace: spec.storage.namespace, name: spec.storage.name }]),
      watch(Server, ({ metadata: { namespace = '', name } }) => [{ namespace, name }]),
      watch(Instance, ({ spec: { server: { namespace, name } } }) => [{ namespace, name }]),
      watch(Zone, () => []),
    ],
    observe: (storage) => observe(parts, storage),
    plan,
  }
}

async function observe({ caches, db }: Parts, { metadata, spec }: StorageObject): Promise<Seen> {
  const { namespace = '', uid = '' } = metadata
  const accountId = accountOfNamespace(namespace)
  const { serverId } = spec
  const placement = accountId === undefined || serverId === undefined ? undefined : await asked(findPlacement(db, { accountId, serverId }))
  const server = serverId === undefined ? undefined : caches.of(Server).get({ namespace, name: serverId })
  return {
    node: placement?.node,
    region: caches.of(Zone).get({ name: spec.zone })?.spec.region,
    volume: caches.of(Volume).by('storage', uid)[0],
    isInUse: (server !== undefined && server.spec.operation?.kind !== 'server.delete') || caches.of(Instance).by('volume', uid).length > 0,
  }
}

/** Guards in order: deleting, not a boot storage, no node, volume missing, volume at work. */
export function plan(storage: StorageObject, seen: Seen): readonly Action[] {
  const { metadata, spec } = storage
  const { volume, node } = seen
  if (metadata.deletionTimestamp !== undefined && !seen.isInUse) {
    if (volume === undefined) return [{ do: 'finalized' }]
    return [{ do: 'remove', type: Volume, key: keyOfVolume(volume) }, { do: 'status', status: { state: 'deleting' }, conditions: healthConditions('reconciling', 'Deleting', '') }]
  }
  if (!spec.isBoot || spec.serverId === undefined) return failed('Only boot storages, which are made with their server, are offered here.')
  if (node === undefined) return [{ do: 'status', status: { state: 'creating' }, conditions: healthConditions('reconciling', 'Waiting', 'The server has no room on any host yet.') }, { do: 'wait', seconds: 5, for: 'the server to be placed' }]
  const place = { nodeName: node, ...(seen.region === undefined ? {} : { region: seen.region }) }
  if (volume === undefined) return [ensureVolume(storage, node), { do: 'status', status: { state: 'creating', ...place }, conditions: healthConditions('reconciling', 'Creating', '') }]
  const blocked: ConditionDraft[] = metadata.deletionTimestamp === undefined ? [] : [{ type: 'DeletionBlocked', status: 'True', reason: 'InUse', message: 'A boot storage goes with its server.' }]
  if (volume.status?.state === 'error') return failed(volume.status.detail ?? 'The host could not make the disk.')
  const isReady = volume.status?.state === 'ready'
  return [{
    do: 'status', status: { state: isReady ? 'online' : 'creating', stateDetail: undefined, ...place },
    conditions: [...healthConditions(isReady ? 'ready' : 'reconciling', isReady ? 'Online' : 'Creating', volume.status?.detail ?? ''), ...blocked],
  }]
}

const failed = (detail: string): readonly Action[] => [{ do: 'status', status: { state: 'error', stateDetail: detail }, conditions: healthConditions('stalled', 'Error', detail) }]
const keyOfVolume = ({ metadata: { namespace = '', name } }: KubeObject): Key => ({ namespace, name })

function ensureVolume({ metadata: { namespace = '', name, uid = '', labels = {} }, spec }: StorageObject, node: string): Action {
  const account = labels[ACCOUNT_LABEL]
  const draft: VolumeSpec = {
    storage: { namespace, name, uid }, sizeGibibytes: spec.sizeGibibytes,
    ...(spec.source?.kind === 'template' ? { source: { kind: 'template', name: spec.source.id } } : {}),
  }
  return { do: 'ensure', type: Volume, draft: { metadata: { namespace: nodeNamespace(node), name: uid, ...(account === undefined ? {} : { labels: { [ACCOUNT_LABEL]: account } }) }, spec: draft } }
}
