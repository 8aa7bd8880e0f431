/** Operators' actions on the placement of storages: moving one, or all of a node. Each is one conditional write with
 *  its operation. */
import * as routes from '../../../resources/storage-placement/index.ts'
import { defined } from '../../../domain/defined.ts'
import { gibibytesOf } from '../../../domain/server/migration-policies.ts'
import { requireDrainable } from '../../../domain/node/rules.ts'
import { Problem, badField, conflict, notFound, unavailable, zoneLacks } from '../../../domain/problem.ts'
import { requireMovableStorage } from '../../../domain/storage/rules.ts'
import { listCandidates } from '../../../db/placement/index.ts'
import { findServerClaims } from '../../../db/server/index.ts'
import { requireMovable } from '../../../db/storage-hold/index.ts'
import { findStorageClaim, listStoragesOn, requireStorageMove } from '../../../db/storage/index.ts'
import type { Answer, Call, Operator } from '../../../kit/http/call.ts'
import { type Endpoint, operatorEndpoint } from '../../../kit/http/endpoint.ts'
import type { KubeObject } from '../../../kit/kube/object.ts'
import { accountNamespace, accountOfNamespace } from '../../../resources/index.ts'
import { Node } from '../../../resources/node/index.ts'
import { Server } from '../../../resources/server/index.ts'
import { Storage, type StorageSpec, type StorageStatus, storageFactsOf } from '../../../resources/storage/index.ts'
import { announceEarlier } from '../../kit/change/accept.ts'
import { beginAsOperator } from '../../kit/change/begin.ts'
import { storedOf } from '../../../resources/kit/shapes.ts'
import { type Nodes, beginOnNode, requireRoomElsewhere } from '../node/index.ts'
import type { Parts } from '../../kit/parts.ts'
import { type ServerObject, moveOf, requireDestination } from '../server/index.ts'
import { noun } from '../../kit/noun.ts'

type StorageObject = KubeObject<StorageSpec, StorageStatus>
type Tier = StorageSpec['tier']
type MoveCall = Call<typeof routes.moveStorage, Operator>

const NAME_INDEX = 'name'
const HOUR_MILLISECONDS = 3_600_000

function storagePlacementEndpoints(parts: Parts, nodes: Nodes): readonly Endpoint[] {
  parts.caches.of(Node)
  parts.caches.of(Storage).addIndex(NAME_INDEX, ({ metadata }) => [metadata.name])
  return [
    operatorEndpoint(routes.moveStorage, (call) => move(parts, call)),
    operatorEndpoint(routes.drainNodeStorage, (call) => drain(parts, nodes, call)),
  ]
}

/** The storage that moves, and its source. */
interface StorageSource {
  readonly accountId: string
  readonly storage: StorageObject
  /** Where its data are. */
  readonly node: string
  /** Undefined while it is detached. */
  readonly server: ServerObject | undefined
}

async function move(parts: Parts, call: MoveCall): Promise<Answer> {
  const { target_node_id, tier: wanted } = call.body
  const { id } = call.params
  const found = await find(parts, call)
  const { accountId, storage, node, server } = found
  const tier = wanted === undefined ? undefined : requireOtherTier(parts, found, wanted)
  const staysShared = tier === undefined && storage.status?.pool !== undefined
  await requireMovable(parts.db, { accountId, storageId: id }, { staysShared })
  if (target_node_id !== undefined) requireFitNode(parts, found, target_node_id, tier)
  const target = await destination(parts, found, { target: target_node_id, tier }, call.now)
  const serverMove = server && moveOf(server)
  const operation = await beginAsOperator(parts, call, {
    kind: 'storage.move',
    target: { type: 'storage', id },
    resource: Storage,
    gibibytes: storage.spec.sizeGibibytes + (server === undefined ? 0 : gibibytesOf(server.status ?? {})),
    accountIds: [accountId],
    arguments: {
      source_node_id: node,
      ...defined({ target_node_id: target, tier, server_id: server?.metadata.name }),
    },
    detail: {
      source_node_id: node,
      ...defined({ target_node_id: target, tier }),
    },
    async read() {
      const read = await parts.store.get(Storage, { namespace: accountNamespace(accountId), name: id })
      if (read === undefined) throw notFound('storage')
      return read
    },
    async validate(read) {
      requireMovableStorage(storageFactsOf(storedOf(read)))
      if (serverMove === undefined && read.spec.serverId !== undefined) throw attachedMeanwhile(id)
      await announceEarlier(parts, accountId, { type: 'storage', id }, read)
    },
  })
  return { status: 202, body: { operation } }
}

const attachedMeanwhile = (id: string): Problem =>
  conflict('state_not_allowed', 'The storage was attached meanwhile. Try again.', {
    resource: { type: 'storage', id },
  })

/** Ids that people chose with kubectl may belong to several accounts. Throws 404, 409, and 403 when the caller may not
 *  access the account's storages. */
async function find(parts: Parts, { caller, params: { id } }: MoveCall): Promise<StorageSource> {
  const { caches, store, db, requireAccess } = parts
  const resource = { type: 'storage', id }
  const known = caches.of(Storage).by(NAME_INDEX, id)
  const { namespace = '' } = (known.length === 1 ? known[0]?.metadata : undefined) ?? {}
  const accountId = accountOfNamespace(namespace)
  // An operator who may not access every account's storages must not learn which ids exist.
  await requireAccess(caller, { verb: 'update', resource: 'storages' }, accountId === undefined ? undefined : namespace)
  if (known.length > 1)
    throw conflict('state_not_allowed', 'Several accounts have a storage of this name.', { resource })
  const storage = accountId === undefined ? undefined : await store.get(Storage, { namespace, name: id })
  if (accountId === undefined || storage === undefined) throw notFound('storage')
  requireMovableStorage(storageFactsOf(storedOf(storage)))
  const claim = storage.spec.isBoot ? undefined : await findStorageClaim(db, { accountId, storageId: id })
  if (claim?.phase === 'detached' && claim.node !== undefined)
    return { accountId, storage, node: claim.node, server: undefined }
  const serverId = claim?.serverId ?? storage.spec.serverId
  const server = serverId === undefined ? undefined : await store.get(Server, { namespace, name: serverId })
  const claims = serverId === undefined ? undefined : await findServerClaims(db, { accountId, serverId })
  if (server === undefined || claims === undefined || claim?.phase === 'arriving' || claim?.phase === 'leaving')
    throw conflict('state_not_allowed', 'The storage is on its way to a server or from one. Try again later.', {
      resource,
    })
  return { accountId, storage, node: claims.placement.node, server }
}

const poolsOf = ({ caches }: Pick<Parts, 'caches'>, node: string): readonly string[] =>
  caches.of(Node).get({ name: node })?.status?.pools ?? []

const nodesOf = ({ caches }: Pick<Parts, 'caches'>, zone: string): readonly string[] =>
  caches
    .of(Node)
    .list()
    .filter(({ spec }) => spec.zone === zone)
    .map(({ metadata }) => metadata.name)
    .sort()

/** Throws 400 for the tier that it already has, and 409 when its zone does not offer the requested one. */
function requireOtherTier(parts: Parts, { storage: { spec, status } }: StorageSource, tier: Tier): Tier {
  const isLocal = status?.pool === undefined
  if (tier === spec.tier && (tier === 'local-nvme' || !isLocal)) throw badField('tier', 'is what the storage has')
  const isOffered = tier === 'local-nvme' || nodesOf(parts, spec.zone).some((node) => poolsOf(parts, node).length > 0)
  if (!isOffered)
    throw zoneLacks('replicated_storage', `Zone ${spec.zone} has no shared storage: nothing of it is replicated.`)
  return tier
}

/** Whether the node can hold the data with the desired tier. */
const isFit = (
  parts: Parts,
  { storage: { spec, status } }: StorageSource,
  node: string,
  tier: Tier | undefined,
): boolean => {
  if ((tier ?? spec.tier) !== 'standard') return true
  const pools = poolsOf(parts, node)
  if (status?.pool !== undefined) return pools.includes(status.pool)
  return tier === undefined || pools.length > 0
}

/** Throws 400 for a node outside the zone and for the node that has the storage, and 409 for one that does not reach
 *  the shared storage of the desired placement. */
function requireFitNode(parts: Parts, found: StorageSource, target: string, tier: Tier | undefined): void {
  const { storage, node } = found
  const { zone } = storage.spec
  if (!nodesOf(parts, zone).includes(target)) throw badField('target_node_id', `is no node of zone ${zone}`)
  if (target === node) throw badField('target_node_id', 'is where the storage is')
  if (!isFit(parts, found, target, tier))
    throw conflict(
      'state_not_allowed',
      `Node ${target} does not reach the shared storage of the zone. Choose another node, or tier local-nvme.`,
      { resource: { type: 'node', id: target } },
    )
}

/** The destination; undefined for any node with room. Throws the error with which the move would fail for lack of
 *  room. */
async function destination(
  parts: Parts,
  found: StorageSource,
  { target, tier }: { readonly target: string | undefined; readonly tier: Tier | undefined },
  now: Date,
): Promise<string | undefined> {
  const { accountId, storage, server, node } = found
  const others = nodesOf(parts, storage.spec.zone).filter((each) => each !== node)
  const unfit = others.filter((each) => !isFit(parts, found, each, tier))
  if (server === undefined) {
    const staysShared = tier === undefined && storage.status?.pool !== undefined
    const request = { accountId, storageId: storage.metadata.name, node: target, excludedNodes: unfit, staysShared }
    await requireStorageMove(parts.db, request)
    return target
  }
  if (target !== undefined || unfit.length === 0) {
    await requireDestination(parts, { accountId, server }, { node: target }, now)
    return target
  }
  for (const each of others.filter((other) => !unfit.includes(other)))
    if (await hasRoomFor(parts, { accountId, server }, each, now)) return each
  throw unavailable('no_capacity', `No node with shared storage has room for server ${server.metadata.name} now.`)
}

async function hasRoomFor(
  parts: Parts,
  found: { readonly accountId: string; readonly server: ServerObject },
  node: string,
  now: Date,
): Promise<boolean> {
  try {
    await requireDestination(parts, found, { node }, now)
    return true
  } catch (error) {
    if (error instanceof Problem && error.status === 503) return false
    throw error
  }
}

async function drain(
  parts: Parts,
  nodes: Nodes,
  call: Call<typeof routes.drainNodeStorage, Operator>,
): Promise<Answer> {
  const node = await nodes.read(call.params.id)
  await requireRoomElsewhere(parts, node)
  await requireRoomForStorages(parts, node.metadata.name, node.spec.zone)
  const { deadline_hours } = call.body
  const operation = await beginOnNode(parts, nodes, call, {
    kind: 'storage.drain_host',
    validate: requireDrainable,
    spec: { isCordoned: true },
    deadlineAt: new Date(call.now.getTime() + deadline_hours * HOUR_MILLISECONDS),
    detail: { deadline_hours: String(deadline_hours) },
  })
  return { status: 202, body: { operation } }
}

/** Throws 503 when the other nodes of the zone have less free space than the detached storages of the node need. */
async function requireRoomForStorages({ db }: Parts, node: string, zone: string): Promise<void> {
  const wanted = (await listStoragesOn(db, node))
    .filter(({ isArriving }) => !isArriving)
    .reduce((sum, { sizeGibibytes }) => sum + sizeGibibytes, 0)
  const free = (await listCandidates(db, zone))
    .filter((candidate) => candidate.node !== node && candidate.isSchedulable)
    .reduce((sum, { total, used }) => sum + Math.max(0, total.storageGibibytes - used.storageGibibytes), 0)
  if (wanted > free)
    throw unavailable(
      'no_capacity',
      `The storages of the node that no server has take ${wanted} GiB, and zone ${zone} has ${free} GiB elsewhere.`,
    )
}

export const storagePlacement = noun<Parts & { readonly nodes: Nodes }>({
  name: 'storage-placement',
  endpoints: (parts) => storagePlacementEndpoints(parts, parts.nodes),
})
