/** The storage controller: its watches and what it reads. `plan.ts` decides, `effects.ts` acts. The server controller
 *  creates a boot storage, which is deleted before its server. */
import { storageChanges } from '../../../changes/storage.ts'
import { isReachableState } from '../../../domain/node/rules.ts'
import { isUuid } from '../../../domain/uuid.ts'
import { wasRemovalOrderedByName } from '../../../db/removal/index.ts'
import { type KubernetesRequest, listKubernetesRequests } from '../../../db/request/index.ts'
import { type ClaimsReading, openClaimsReading, type ServerClaims } from '../../../db/server/index.ts'
import { findStorageClaim, type StorageClaim } from '../../../db/storage/index.ts'
import { copyHolder, hasHold, readHolds as readHoldsOf } from '../../../db/storage-hold/index.ts'
import { type Key, keyOf, type KubeObject } from '../../../kit/kube/object.ts'
import { type Watch, watch } from '../../../kit/reconcile/reconciler.ts'
import { Backup, objectStorageZoneOf } from '../../../resources/backup/index.ts'
import { accountOfNamespace } from '../../../resources/index.ts'
import {
  imageName,
  Instance,
  type InstanceSpec,
  type InstanceStatus,
  nodeNamespace,
  nodeOf,
  NodeReport,
  Volume,
} from '../../../resources/instance/index.ts'
import { isBuiltHere, Template, Zone } from '../../../resources/catalog/index.ts'
import { CustomImage } from '../../../resources/custom-image/index.ts'
import { finalizerOf } from '../../../resources/kit/define.ts'
import { Node } from '../../../resources/node/index.ts'
import { Server, type ServerSpec, type ServerStatus } from '../../../resources/server/index.ts'
import { Snapshot } from '../../../resources/snapshot/index.ts'
import { Storage } from '../../../resources/storage/index.ts'
import type { BackupAccess } from '../../kit/backup-key.ts'
import { controller } from '../../kit/controller.ts'
import { currentClaims } from '../../kit/current-claims.ts'
import { orUnavailable } from '../../kit/outage.ts'
import { intentOf } from '../../kit/changes.ts'
import { findEditor, requesterOf } from '../../kit/operation/direct-edit.ts'
import { activeOperation } from '../../kit/operation/stanza.ts'
import type { Parts } from '../../kit/parts.ts'
import { bootStorageName, isDeleting, isGuestLeftToItsNode, migrationKeyKey } from '../server/index.ts'
import { hasPool, nodesWithoutPool, nodesWithoutPools, poolsOf } from '../../kit/shared-pools.ts'
import type { StorageEffects } from './actions.ts'
import { storageEffects } from './effects.ts'
import { transferKeyKey } from './keys.ts'
import type { Observed } from './observed.ts'
import { COPIES_OF, OF_SNAPSHOT, readOrigin, readPoints, SNAPSHOTS_OF } from './points.ts'
import { detectEdit, plan } from './plan.ts'
import { isTerminating, requestedTier, type StorageObject, effectiveTier, type VolumeObject } from './volumes.ts'

export const storageController = controller<StorageEffects>()({
  name: 'storage',
  resource: Storage,
  sharding: 'by-zone',
  finalizer: finalizerOf(Storage),
  intent: intentOf(storageChanges),
  plan,
  reads: [Snapshot, Instance, Node, Zone, Template, NodeReport, CustomImage],
  writes: [Volume, Backup],
  // A storage that a server has is moved with the server.
  patches: [Server],
  open(parts: Parts & BackupAccess) {
    const readings = { ...parts, claimsOf: openClaimsReading(parts.db) }
    return {
      watches: watches(parts),
      observe: (storage, now) => observe(readings, storage, now),
      effects: storageEffects(parts),
    }
  },
})

function watches({ caches }: Parts): readonly Watch[] {
  const volumes = caches.of(Volume)
  volumes.addIndex('storage', ({ spec }) => [spec.storage.uid])
  caches.of(Instance).addIndex('volume', ({ spec }) => spec.disks.map(({ volume }) => volume))
  const storages = caches.of(Storage)
  const indexKey = (namespace: string | undefined, serverId: string) => `${namespace}/${serverId}`
  storages.addIndex('server', ({ metadata, spec, status }) =>
    [...new Set([spec.serverId, status?.serverId])].flatMap((serverId) =>
      serverId === undefined ? [] : [indexKey(metadata.namespace, serverId)],
    ),
  )
  storages.addIndex('from-backup', ({ metadata, spec: { source } }) =>
    source?.kind === 'backup' ? [indexKey(metadata.namespace, source.id)] : [],
  )
  caches
    .of(Backup)
    .addIndex('backed-up-storage', ({ metadata, spec }) => [indexKey(metadata.namespace, spec.storageId)])
  storages.addIndex(COPIES_OF, ({ metadata, spec: { source } }) =>
    source?.kind === 'storage' ? [indexKey(metadata.namespace, source.id)] : [],
  )
  storages.addIndex(OF_SNAPSHOT, ({ metadata, spec: { source } }) =>
    source?.kind === 'snapshot' ? [indexKey(metadata.namespace, source.id)] : [],
  )
  caches.of(Snapshot).addIndex(SNAPSHOTS_OF, ({ metadata, spec }) => [indexKey(metadata.namespace, spec.storageId)])
  storages.addIndex('image', ({ metadata, spec }) =>
    spec.source?.kind === 'image' ? [indexKey(metadata.namespace, spec.source.id)] : [],
  )
  const storagesOf = (namespace: string | undefined, serverId: string) =>
    storages.by('server', indexKey(namespace, serverId)).map(keyOf)
  return [
    watch(Volume, (volume) => {
      const key = storageOf(volume)
      const { namespace, name } = key
      return [key, ...storages.by(COPIES_OF, `${namespace}/${name}`).map(keyOf)]
    }),
    watch(Server, ({ metadata: { namespace, name } }) => storagesOf(namespace, name)),
    watch(
      Instance,
      ({
        spec: {
          server: { namespace, name },
        },
      }) => storagesOf(namespace, name),
    ),
    // The deleted volumes of a lost node are removed through another node.
    watch(Node, ({ metadata: { name }, status }) =>
      status?.state === 'fenced' ? volumes.inNamespace(nodeNamespace(name)).filter(isTerminating).map(storageOf) : [],
    ),
    watch(Backup, ({ metadata: { namespace = '', name }, spec }) => [
      { namespace, name: spec.storageId },
      ...storages.by('from-backup', indexKey(namespace, name)).map(keyOf),
    ]),
    // The volume of its storage takes and removes a snapshot; storages that are created from it read it.
    watch(Snapshot, ({ metadata: { namespace = '', name }, spec: { storageId } }) => [
      { namespace, name: storageId },
      ...storages.by(OF_SNAPSHOT, `${namespace}/${name}`).map(keyOf),
    ]),
    watch(Storage, ({ metadata: { namespace = '' }, spec: { source } }) =>
      source?.kind === 'storage' ? [{ namespace, name: source.id }] : [],
    ),
    watch(Zone, () => []),
    watch(CustomImage, ({ metadata: { namespace, name } }) =>
      storages.by('image', indexKey(namespace, name)).map(keyOf),
    ),
    watch(NodeReport, () => []),
    watch(Template, () => []),
  ]
}

const storageOf = ({
  spec: {
    storage: { namespace, name },
  },
}: VolumeObject): Key => ({ namespace, name })

/** Nodes that have the disk and can no longer delete it: fenced ones, and the one from which its server is released by
 *  force, unless that node is reachable again. */
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

/** Which nodes can delete the disk, and which no longer can. */
const ownersOf = (
  caches: Parts['caches'],
  held: readonly VolumeObject[],
  server: KubeObject<ServerSpec> | undefined,
): Pick<Observed, 'lostNodes' | 'isReleased' | 'successorNode'> => ({
  lostNodes: lostNodes(caches, held, server),
  isReleased: server?.spec.operation?.kind === 'server.force_release',
  successorNode: successorOf(caches, held.find(({ spec }) => spec.pool !== undefined)?.spec.pool),
})

/** The boots, on nodes that have the disk, of which nothing runs any longer. */
const lostBootsOf = (...[caches, held, server]: Parameters<typeof lostNodes>): NonNullable<Observed['lostBoots']> =>
  [...new Set(lostNodes(caches, held, server))].flatMap((node) => {
    const { fence, bootId } = caches.of(Node).get({ name: node })?.status ?? {}
    const lost = fence?.bootId ?? bootId
    return lost === undefined ? [] : [{ node, bootId: lost }]
  })

/** A disk of the host itself that a fenced node removes when it returns: nothing waits for that. */
const isLeftToItsNode = (caches: Parts['caches'], volume: VolumeObject): boolean => {
  if (!isTerminating(volume) || volume.spec.pool !== undefined) return false
  const { fence } = caches.of(Node).get({ name: nodeOf(volume) })?.status ?? {}
  return fence !== undefined && fence.method !== 'storage_block' // guests may still write to disks of the host
}

/** Nodes that do not reach the shared storage on which a move must keep the storage, or to which it must bring it. */
function unfitNodes(caches: Parts['caches'], storage: StorageObject): readonly string[] {
  if (effectiveTier(storage) !== 'standard') return []
  const { pool } = storage.status ?? {}
  if (pool !== undefined) return nodesWithoutPool(caches, pool)
  return requestedTier(storage) === undefined ? [] : nodesWithoutPools(caches)
}

type Readings = Parts & { readonly claimsOf: ClaimsReading }

async function observe(readings: Readings, storage: StorageObject, now: Date): Promise<Observed> {
  const { caches } = readings
  const { namespace = '', uid = '', deletionTimestamp } = storage.metadata
  const account = accountOfNamespace(namespace)
  const accountId = account !== undefined && isUuid(account) ? account : undefined
  const claim =
    storage.spec.isBoot || accountId === undefined
      ? undefined
      : await orUnavailable(findStorageClaim(readings.db, { accountId, storageId: storage.metadata.name }))
  const serverId = claim?.serverId ?? storage.spec.serverId
  const held =
    accountId === undefined || serverId === undefined
      ? undefined
      : await orUnavailable(readings.claimsOf({ accountId, serverId }))
  const server = serverId === undefined ? undefined : caches.of(Server).get({ namespace, name: serverId })
  const claims = server === undefined ? held : await currentClaims(readings, server, held)
  const instances = caches
    .of(Instance)
    .by('volume', uid)
    .filter((instance) => server === undefined || !isGuestLeftToItsNode(caches, server, instance))
  const volumes = caches
    .of(Volume)
    .by('storage', uid)
    .filter((volume) => !isLeftToItsNode(caches, volume))
  const requests = await readRequests(readings.db, storage)
  const place = placeOf(readings, storage, { claim, claims, server, instances })
  const isServerGone = serverId !== undefined && (await isGone(readings, { namespace, serverId }, server))
  const observed: Observed = {
    accountId,
    claim,
    heldGibibytes: storage.spec.isBoot ? claims?.placement.storageGibibytes : claim?.sizeGibibytes,
    serverNode: claims?.placement.node,
    isServerGone,
    isServerRemovalOrdered:
      isServerGone &&
      (await orUnavailable(wasRemovalOrderedByName(readings.db, { kind: Server.kind, namespace, name: serverId }))),
    isServerDeletedWithStorages:
      server?.spec.operation?.kind === 'server.delete' &&
      server.spec.operation.arguments?.['delete_storages'] === 'true',
    guest: guestOf(caches, { uid, server, node: claim?.node ?? claims?.placement.node }),
    ...backupsOf(caches, storage),
    region: caches.of(Zone).get({ name: storage.spec.zone })?.spec.region,
    volumes,
    lostBoots: lostBootsOf(caches, volumes, server),
    ...(deletionTimestamp === undefined ? {} : ownersOf(caches, volumes, server)),
    usedOn: instances.map(nodeOf),
    image: await imageOf(readings, storage),
    pools: place.node === undefined ? [] : poolsOf(caches, place.node),
    ...(await readPoints(readings, storage, volumes)),
    ...(await readHolds(readings, storage, accountId)),
    origin: readOrigin(caches, storage),
    isInUse:
      (server !== undefined && !isDeleting(server) && bootStorageName(server) === storage.metadata.name) ||
      instances.length > 0,
    ...place,
    server,
    unfitNodes: unfitNodes(caches, storage),
    requests,
  }
  const edit = detectEdit({ storage, observed, now })
  return edit === undefined
    ? observed
    : {
        ...observed,
        editor: requesterOf(requests, edit.kind) ?? (await findEditor(readings.store, Storage, storage, edit.field)),
      }
}

/** The backups that matter to the storage: the one that it is created from, and the one that is restored to it. */
function backupsOf(
  caches: Parts['caches'],
  { metadata: { namespace = '', name }, spec: { source }, status }: StorageObject,
): Pick<Observed, 'restore' | 'isBackingUp' | 'isBackupOnline' | 'backupObjectStorageZone'> {
  const backups = caches.of(Backup)
  const origin = source?.kind === 'backup' ? backups.get({ namespace, name: source.id }) : undefined
  const own = backups.by('backed-up-storage', `${namespace}/${name}`)
  const restored = own.find((backup) => activeOperation(backup)?.kind === 'backup.restore')
  const operationId = restored === undefined ? undefined : activeOperation(restored)?.id
  const last =
    status?.restore === undefined
      ? undefined
      : backups.get({ namespace, name: status.restore.backup })?.status?.lastRestore
  return {
    isBackingUp: own.some((backup) => activeOperation(backup)?.kind === 'storage.backup'),
    isBackupOnline: origin?.status?.state === 'online' && origin.metadata.deletionTimestamp === undefined,
    backupObjectStorageZone: origin === undefined ? undefined : objectStorageZoneOf(origin),
    restore: {
      requested:
        restored === undefined || operationId === undefined
          ? undefined
          : { backup: restored.metadata.name, operationId },
      outcome: last?.operationId === status?.restore?.operationId ? last?.outcome : undefined,
    },
  }
}

/** Read only where the answer matters. */
async function readHolds(
  { db }: Readings,
  { metadata: { name: storageId }, spec: { source } }: StorageObject,
  accountId: string | undefined,
): Promise<Pick<Observed, 'isHeld' | 'isHeldInPlace' | 'isHeldOnHost' | 'holdsSource'>> {
  if (accountId === undefined) return {}
  const { isKept, isInPlace, isOnHost } = await orUnavailable(readHoldsOf(db, { accountId, storageId }))
  return {
    isHeld: isKept,
    isHeldInPlace: isInPlace,
    isHeldOnHost: isOnHost,
    holdsSource:
      source?.kind === 'storage' && (await orUnavailable(hasHold(db, { accountId, holder: copyHolder(storageId) }))),
  }
}

interface Surroundings {
  readonly claim: StorageClaim | undefined
  readonly claims: ServerClaims | undefined
  readonly server: KubeObject<ServerSpec, ServerStatus> | undefined
  readonly instances: readonly KubeObject<InstanceSpec, InstanceStatus>[]
}

/** Where the data is, and where it moves: with its server, or from another node to the server. */
function placeOf(
  { caches }: Readings,
  storage: StorageObject,
  { claim, claims, server, instances }: Surroundings,
): Pick<Observed, 'node' | 'zone' | 'target' | 'migration' | 'moveSecretName' | 'isGuestOff'> {
  const { node: serverNode, zone } = claims?.placement ?? {}
  if (claim !== undefined && claim.phase !== 'attached') {
    const { node } = claim
    const operationId = storage.spec.operation?.id ?? ''
    const to = claim.phase === 'arriving' ? serverNode : claim.targetNode
    return {
      node,
      zone: claim.zone,
      isGuestOff: instances.length === 0,
      ...(to !== undefined && node !== undefined && to !== node
        ? {
            target: { node: to, zone: claim.zone, operationId, pools: poolsOf(caches, to) },
            migration: { operationId, state: 'detached' },
            moveSecretName: transferKeyKey(storage, node).name,
          }
        : {}),
    }
  }
  const node = storage.spec.isBoot || claim !== undefined ? serverNode : undefined
  return {
    node,
    zone,
    target: claims?.target && { ...claims.target, pools: poolsOf(caches, claims.target.node) },
    migration: server?.status?.migration,
    moveSecretName: server === undefined || node === undefined ? undefined : migrationKeyKey(server, node).name,
    isGuestOff: instances.every((instance) => nodeOf(instance) !== node || isOff(instance)),
  }
}

/** Read only for a storage that is not complete yet. */
async function imageOf(
  { caches, store }: Pick<Parts, 'caches' | 'store'>,
  { metadata: { namespace = '' }, spec: { source }, status }: StorageObject,
): Promise<string | undefined> {
  if (status?.state === 'online') return undefined
  if (source?.kind === 'template') {
    const key = { name: source.id }
    const template = caches.of(Template).get(key) ?? (await store.get(Template, key))
    return template === undefined || isBuiltHere(template.spec)
      ? undefined
      : imageName({ namespace: '', name: source.id })
  }
  if (source?.kind !== 'image') return undefined
  const key = { namespace, name: source.id }
  const image = caches.of(CustomImage).get(key) ?? (await store.get(CustomImage, key))
  return image && imageName(key)
}

/** A cache may be behind: nothing is abandoned because it is missing in a cache. */
async function isGone(
  { store }: Pick<Parts, 'store'>,
  { namespace, serverId }: { readonly namespace: string; readonly serverId: string },
  known: KubeObject<ServerSpec, ServerStatus> | undefined,
): Promise<boolean> {
  const server = known ?? (await store.get(Server, { namespace, name: serverId }))
  return server === undefined
}

/** From the report of the server's node about its guest, and only when that is about the newest spec. */
function guestOf(
  caches: Parts['caches'],
  {
    uid,
    server,
    node,
  }: { readonly uid: string; readonly server: Surroundings['server']; readonly node: string | undefined },
): NonNullable<Observed['guest']> {
  const ofServer = server === undefined ? [] : caches.of(Instance).by('server', server.metadata.uid ?? '')
  const instance = ofServer.find((one) => nodeOf(one) === node)
  const hasOrder = ofServer.some(({ spec }) => spec.disks.some(({ volume }) => volume === uid))
  const isOpen = ofServer.some(({ status }) => status?.volumes?.includes(uid) === true)
  const hasDisk = isOpen && !ofServer.some(({ status: { unheldVolumes = [] } = {} }) => unheldVolumes.includes(uid))
  if (instance === undefined) return hasOrder || isOpen ? 'unknown' : 'has_not'
  const { status, metadata } = instance
  if (status === undefined || (status.observedGeneration ?? 0) < (metadata.generation ?? 0)) return 'unknown'
  const isAtRest = status.state === 'stopped' || status.state === 'error'
  if (hasOrder) return hasDisk || isAtRest ? 'has' : 'unknown'
  return isOpen ? 'unknown' : 'has_not'
}

/** Only a new generation can carry a request. */
async function readRequests(
  db: Parts['db'],
  { metadata, status }: StorageObject,
): Promise<readonly KubernetesRequest[]> {
  const [after, upTo] = [status?.observedGeneration ?? 0, metadata.generation ?? 0]
  return upTo > after ? orUnavailable(listKubernetesRequests(db, metadata.uid ?? '', { after, upTo })) : []
}

const isOff = ({ spec, status, metadata }: KubeObject<InstanceSpec, InstanceStatus>): boolean =>
  spec.power === 'stopped' &&
  status !== undefined &&
  ['stopped', 'error'].includes(status.state) &&
  (status.observedGeneration ?? 0) >= (metadata.generation ?? 0)
