/** Nodes as requests find them: one read through to the store, pages from the cache, and what PostgreSQL knows of their use. */
import { notFound } from '../domain/problem.ts'
import { countTenants } from '../db/nodes.ts'
import { listAllCandidates } from '../db/placement.ts'
import type { Position } from '../kit/http/cursor.ts'
import type { Cache } from '../kit/kube/cache.ts'
import { type KubeObject, Lease } from '../kit/kube/object.ts'
import { HEARTBEAT_LEASE_NAME, nodeNamespace } from '../resources/instance.ts'
import { type NodeView, toNodeView } from '../resources/node-routes.ts'
import { Node, type NodeSpec, type NodeStatus } from '../resources/platform.ts'
import { compareNewestFirst, positionOf } from './newest-first.ts'
import type { Parts } from './parts.ts'
import { OPERATION_INDEX } from './servers.ts'
import { storedOf } from './stored.ts'

export type NodeObject = KubeObject<NodeSpec, NodeStatus>

export interface Nodes {
  readonly cache: Cache<NodeSpec, NodeStatus>
  /** As the store has it now. Throws 404 for an unknown one. */
  read(id: string): Promise<NodeObject>
  /** At most `count` that come after the position, newest first. */
  page(isWanted: (node: NodeObject) => boolean, after: Position | undefined, count: number): readonly NodeObject[]
  viewsOf(nodes: readonly NodeObject[]): Promise<readonly NodeView[]>
  viewOf(node: NodeObject): Promise<NodeView>
}

export function openNodes({ store, caches, db }: Pick<Parts, 'store' | 'caches' | 'db'>): Nodes {
  const cache = caches.of(Node)
  cache.addIndex(OPERATION_INDEX, ({ spec }) => (spec.operation === undefined ? [] : [spec.operation.id]))
  const lastSeenOf = async ({ metadata: { name } }: NodeObject) => (await store.get(Lease, { namespace: nodeNamespace(name), name: HEARTBEAT_LEASE_NAME }))?.spec.renewTime
  const viewsOf = async (nodes: readonly NodeObject[]): Promise<readonly NodeView[]> => {
    const [candidates, counts, ...heard] = await Promise.all([listAllCandidates(db), countTenants(db), ...nodes.map(lastSeenOf)])
    return nodes.map((node, index) => {
      const { name } = node.metadata
      const used = candidates.find((candidate) => candidate.node === name)?.used ?? { cores: 0, memoryMebibytes: 0 }
      return toNodeView(storedOf(node), { used, serverCount: counts.get(name) ?? 0, lastSeenAt: heard[index] })
    })
  }
  return {
    cache, viewsOf,
    async read(id) {
      const node = await store.get(Node, { name: id })
      if (node === undefined) throw notFound('node')
      cache.apply(node)
      return node
    },
    page: (isWanted, after, count) =>
      cache.list().filter((node) => isWanted(node) && (after === undefined || compareNewestFirst(positionOf(node), after) > 0))
        .sort((one, other) => compareNewestFirst(positionOf(one), positionOf(other))).slice(0, count),
    async viewOf(node) {
      const [view] = await viewsOf([node])
      if (view === undefined) throw new Error('one node has one view')
      return view
    },
  }
}
