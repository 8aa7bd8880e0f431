/** The storage controller: what wakes it and what it reads. What it decides is `plan.ts`. A boot storage is made by the
 *  server controller, and gone before its server. */
import { isReachableState } from '../../domain/node-rules.ts'
import { isUuid } from '../../domain/uuid.ts'
import { type ClaimsReading, openClaimsReading } from '../../db/server/index.ts'
import { type Key, keyOf, type KubeObject } from '../../kit/kube/object.ts'
import { type Watch, watch } from '../../kit/reconcile/reconciler.ts'
import { accountOfNamespace } from '../../resources/index.ts'
import {
  Instance,
  type InstanceSpec,
  type InstanceStatus,
  nodeNamespace,
  nodeOf,
  NodeReport,
  Volume,
} from '../../resources/instance/index.ts'
import { STORAGE_FINALIZER } from '../../resources/labels.ts'
import { Zone } from '../../resources/catalog/index.ts'
import { Node } from '../../resources/node/index.ts'
import { Server, type ServerSpec } from '../../resources/server/index.ts'
import { Storage } from '../../resources/storage/index.ts'
import { controller } from '../controller.ts'
import { orUnavailable } from '../database.ts'
import type { NoEffects } from '../effects.ts'
import type { Parts } from '../parts.ts'
import { bootStorageName, isDeleting, migrationKeyKey } from '../server/index.ts'
import { hasPool, poolsOf } from '../shared-pools.ts'
import type { Observed } from './observed.ts'
import { plan } from './plan.ts'
import { isTerminating, type StorageObject, type VolumeObject } from './volumes.ts'

export const storageController = controller<NoEffects>()({
  name: 'storage',
  resource: Storage,
  sharding: 'by-zone',
  finalizer: STORAGE_FINALIZER,
  plan,
  open(parts: Parts) {
    const readings = { caches: parts.caches, claimsOf: openClaimsReading(parts.db) }
    return { watches: watches(parts), observe: (storage) => observe(readings, storage), effects: {} }
  },
})

function watches({ caches }: Parts): readonly Watch[] {
  const volumes = caches.of(Volume)
  volumes.addIndex('storage', ({ spec }) => [spec.storage.uid])
  caches.of(Instance).addIndex('volume', ({ spec }) => spec.disks.map(({ volume }) => volume))
  const storages = caches.of(Storage)
  const indexKey = (namespace: string | undefined, serverId: string) => `${namespace}/${serverId}`
  storages.addIndex('server', ({ metadata, spec }) =>
    spec.serverId === undefined ? [] : [indexKey(metadata.namespace, spec.serverId)],
  )
  /** A server that is rebuilt has two. */
  const storagesOf = (namespace: string | undefined, serverId: string) =>
    storages.by('server', indexKey(namespace, serverId)).map(keyOf)
  return [
    watch(Volume, (volume) => [storageOf(volume)]),
    watch(Server, ({ metadata: { namespace, name } }) => storagesOf(namespace, name)),
    watch(
      Instance,
      ({
        spec: {
          server: { namespace, name },
        },
      }) => storagesOf(namespace, name),
    ),
    // What is deleted on a node that is lost goes with another.
    watch(Node, ({ metadata: { name }, status }) =>
      status?.state === 'fenced' ? volumes.inNamespace(nodeNamespace(name)).filter(isTerminating).map(storageOf) : [],
    ),
    watch(Zone, () => []),
    watch(NodeReport, () => []),
  ]
}

const storageOf = ({
  spec: {
    storage: { namespace, name },
  },
}: VolumeObject): Key => ({ namespace, name })

/** Nodes that hold the disk and cannot end it any more: fenced ones, and the one that its server is released from,
 *  unless it is heard again. */
function lostNodes(
  caches: Parts['caches'],
  held: readonly VolumeObject[],
  server: KubeObject<ServerSpec> | undefined,
): readonly string[] {
  const { kind, arguments: args } = server?.spec.operation ?? {}
  const released = kind === 'server.force_release' ? args?.['lost_node_id'] : undefined
  return held.map(nodeOf).filter((name) => {
    const state = caches.of(Node).get({ name })?.status?.state
    return state === 'fenced' || (name === released && !isReachableState(state))
  })
}

/** The first by name, so that it stays the same. */
const successorOf = (caches: Parts['caches'], pool: string | undefined): string | undefined =>
  pool === undefined
    ? undefined
    : caches
        .of(Node)
        .list()
        .filter(({ metadata: { name }, status }) => isReachableState(status?.state) && hasPool(caches, name, pool))
        .map(({ metadata }) => metadata.name)
        .sort()[0]

/** Who can end the disk, and who cannot any more. */
const ownersOf = (
  caches: Parts['caches'],
  held: readonly VolumeObject[],
  server: KubeObject<ServerSpec> | undefined,
): Pick<Observed, 'lostNodes' | 'isReleased' | 'successorNode'> => ({
  lostNodes: lostNodes(caches, held, server),
  isReleased: server?.spec.operation?.kind === 'server.force_release',
  successorNode: successorOf(caches, held.find(({ spec }) => spec.pool !== undefined)?.spec.pool),
})

async function observe(
  { caches, claimsOf }: Pick<Parts, 'caches'> & { readonly claimsOf: ClaimsReading },
  { metadata, spec }: StorageObject,
): Promise<Observed> {
  const { namespace = '', uid = '' } = metadata
  const accountId = accountOfNamespace(namespace)
  const { serverId } = spec
  const claims =
    accountId === undefined || !isUuid(accountId) || serverId === undefined
      ? undefined
      : await orUnavailable(claimsOf({ accountId, serverId }))
  const server = serverId === undefined ? undefined : caches.of(Server).get({ namespace, name: serverId })
  const instances = caches.of(Instance).by('volume', uid)
  const volumes = caches.of(Volume).by('storage', uid)
  const { node, zone } = claims?.placement ?? {}
  return {
    node,
    zone,
    target: claims?.target && { ...claims.target, pools: poolsOf(caches, claims.target.node) },
    migration: server?.status?.migration,
    moveSecretName: server === undefined || node === undefined ? undefined : migrationKeyKey(server, node).name,
    region: caches.of(Zone).get({ name: spec.zone })?.spec.region,
    volumes,
    ...(metadata.deletionTimestamp === undefined ? {} : ownersOf(caches, volumes, server)),
    usedOn: instances.map(nodeOf),
    isGuestOff: instances.every((instance) => nodeOf(instance) !== node || isOff(instance)),
    pools: node === undefined ? [] : poolsOf(caches, node),
    isInUse:
      (server !== undefined && !isDeleting(server) && bootStorageName(server) === metadata.name) ||
      instances.length > 0,
  }
}

const isOff = ({ spec, status, metadata }: KubeObject<InstanceSpec, InstanceStatus>): boolean =>
  spec.power === 'stopped' &&
  status !== undefined &&
  ['stopped', 'error'].includes(status.state) &&
  (status.observedGeneration ?? 0) >= (metadata.generation ?? 0)
