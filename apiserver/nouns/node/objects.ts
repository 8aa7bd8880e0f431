/** Nodes for requests: single reads go through to the store, pages come from the cache, and their usage from
 *  PostgreSQL. */
import { type Evacuee, evacueeKey, findUnplaceable } from '../../../domain/node/evacuation.ts'
import { type NodeFacts, requireRemovable } from '../../../domain/node/rules.ts'
import { notFound, unavailable } from '../../../domain/problem.ts'
import { countTenants, listAllCandidates, listCandidates, listTenants } from '../../../db/placement/index.ts'
import { listGroupsOn } from '../../../db/server-group/index.ts'
import { listStoragesOn } from '../../../db/storage/index.ts'
import type { Cache } from '../../../kit/kube/cache.ts'
import { type KubeObject, Lease } from '../../../kit/kube/object.ts'
import { accountNamespace } from '../../../resources/index.ts'
import { HEARTBEAT_LEASE_NAME, NODE_REPORT_NAME, nodeNamespace, NodeReport } from '../../../resources/instance/index.ts'
import {
  Node,
  nodeFactsOf,
  type NodeSpec,
  type NodeStatus,
  type NodeView,
  toNodeView,
} from '../../../resources/node/index.ts'
import { Plan } from '../../../resources/catalog/index.ts'
import { activeOperationOf } from '../../../resources/operation/index.ts'
import { Server } from '../../../resources/server/index.ts'
import type { Parts } from '../../kit/parts.ts'
import { storedOf } from '../../../resources/kit/shapes.ts'

export type NodeObject = KubeObject<NodeSpec, NodeStatus>

export interface Nodes {
  readonly cache: Cache<NodeSpec, NodeStatus>
  /** As the store has it now. Throws 404 for an unknown node. */
  read(id: string): Promise<NodeObject>
  viewsOf(nodes: readonly NodeObject[]): Promise<readonly NodeView[]>
  viewOf(node: NodeObject): Promise<NodeView>
}

export function openNodes({ store, caches, db }: Pick<Parts, 'store' | 'caches' | 'db'>): Nodes {
  const cache = caches.of(Node)
  const lastSeenOf = async ({ metadata: { name } }: NodeObject) =>
    (await store.get(Lease, { namespace: nodeNamespace(name), name: HEARTBEAT_LEASE_NAME }))?.spec.renewTime
  /** As the host itself reports; PostgreSQL may have forgotten some. */
  const guestsOn = async ({ metadata: { name } }: NodeObject): Promise<number> =>
    (await store.get(NodeReport, { namespace: nodeNamespace(name), name: NODE_REPORT_NAME }))?.status?.held?.guests ?? 0
  const viewsOf = async (nodes: readonly NodeObject[]): Promise<readonly NodeView[]> => {
    const [candidates, counts, heard, guests] = await Promise.all([
      listAllCandidates(db),
      countTenants(db),
      Promise.all(nodes.map(lastSeenOf)),
      Promise.all(nodes.map(guestsOn)),
    ])
    return nodes.map((node, index) => {
      const { name } = node.metadata
      const used = candidates.find((candidate) => candidate.node === name)?.used ?? { cores: 0, memoryMebibytes: 0 }
      const serverCount = Math.max(counts.get(name) ?? 0, guests[index] ?? 0)
      return toNodeView(storedOf(node), { used, serverCount, lastSeenAt: heard[index] })
    })
  }
  return {
    cache,
    viewsOf,
    async read(id) {
      const node = await store.get(Node, { name: id })
      if (node === undefined) throw notFound('node')
      cache.apply(node)
      return node
    },
    async viewOf(node) {
      const [view] = await viewsOf([node])
      if (view === undefined) throw new Error('one node has one view')
      return view
    },
  }
}

/** The facts about a node that rules validate. */
export async function nodeFacts({ db }: Pick<Parts, 'db'>, node: NodeObject): Promise<NodeFacts> {
  return nodeFactsOf(storedOf(node), (await listTenants(db, node.metadata.name)).length)
}

/** Throws 409 while anything is on the node, or may come. */
export async function requireNothingLeft(parts: Pick<Parts, 'db'>, node: NodeObject): Promise<void> {
  const storages = await listStoragesOn(parts.db, node.metadata.name)
  requireRemovable(
    await nodeFacts(parts, node),
    storages.map(({ storageId }) => storageId),
  )
}

/** The other nodes of its zone, among which a canary is chosen. */
export const othersOf = (cache: Cache<NodeSpec, NodeStatus>, { id, zone }: NodeFacts) =>
  cache
    .list()
    .filter(({ metadata, spec }) => spec.zone === zone && metadata.name !== id)
    .map((other) => ({
      ...nodeFactsOf(storedOf(other), 0),
      upgradingTo:
        activeOperationOf(other)?.kind === 'node.agent_upgrade'
          ? (other.spec.operation?.arguments?.['version'] ?? other.spec.desiredAgentVersion)
          : undefined,
    }))

/** The guests of the node that must find room elsewhere when it is lost or drained. */
export async function listEvacuees(
  { db, caches }: Pick<Parts, 'db' | 'caches'>,
  node: string,
): Promise<readonly Evacuee[]> {
  const [tenants, groups] = await Promise.all([listTenants(db, node), listGroupsOn(db, node)])
  return tenants
    .filter(({ isArriving }) => !isArriving)
    .map(({ accountId, serverId, cores, memoryMebibytes, storageGibibytes }) => {
      const server = caches.of(Server).get({ namespace: accountNamespace(accountId), name: serverId })
      const cpuPool = server === undefined ? undefined : caches.of(Plan).get({ name: server.spec.plan })?.spec.cpuPool
      return {
        accountId,
        serverId,
        room: { cores, memoryMebibytes, storageGibibytes },
        cpuPool,
        group: groups.get(evacueeKey(accountId, serverId)),
      }
    })
}

/** Throws 503 when the zone has no room for every guest that would have to leave the node, naming them. */
export async function requireRoomElsewhere(
  { db, caches }: Pick<Parts, 'db' | 'caches'>,
  { metadata: { name }, spec: { zone } }: NodeObject,
): Promise<void> {
  const [guests, candidates] = await Promise.all([listEvacuees({ db, caches }, name), listCandidates(db, zone)])
  const unplaceable = findUnplaceable({ node: name, zone }, guests, candidates)
  if (unplaceable.length === 0) return
  const servers = unplaceable.length === 1 ? 'a server' : `${unplaceable.length} servers`
  throw unavailable('no_capacity', `Zone ${zone} has no room for ${servers} of the node.`, {
    blocking_servers: unplaceable,
  })
}
