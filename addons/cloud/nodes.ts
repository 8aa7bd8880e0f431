/** Nodes of the cluster: their servers, and the nodes that get traffic. A node is identified by its name, which the
 *  platform gave its server; the node's own claims in the cluster are not trusted. Pure. */
import type { NodeObject } from './objects.ts'

/** A server of a pool of the cluster, in the platform. */
export interface PoolServer {
  /** Name of its node. */
  readonly hostname: string
  readonly serverId: string
  readonly zone: string
  /** Its IPv4 address in the network of the cluster. */
  readonly address: string
}

/** A destination of traffic. */
export interface BalancerTarget {
  readonly name: string
  readonly address: string
}

/** Kubernetes label of nodes that get no external traffic. */
const EXCLUDED_LABEL = 'node.kubernetes.io/exclude-from-external-load-balancers'

const isReady = ({ status }: NodeObject): boolean =>
  (status?.conditions ?? []).some((condition) => condition.type === 'Ready' && condition.status === 'True')
const isExcluded = ({ metadata: { labels = {}, deletionTimestamp } }: NodeObject): boolean =>
  labels[EXCLUDED_LABEL] !== undefined || deletionTimestamp !== undefined

/** The relevant fields of a node, as one text. */
export const nodeDigest = (node: NodeObject): string =>
  JSON.stringify([node.metadata.uid, isReady(node), isExcluded(node), node.spec.providerID])

/** Nodes of pools that are ready and not excluded, by name. If none is ready, all that are not excluded: a control
 *  plane without contact to its nodes reports all of them as not ready, and the balancer checks itself which of them
 *  answer. */
export function targetsOf(nodes: readonly NodeObject[], servers: readonly PoolServer[]): readonly BalancerTarget[] {
  const candidates = nodes.filter((node) => !isExcluded(node))
  const ready = candidates.filter(isReady)
  const names = new Set((ready.length > 0 ? ready : candidates).map(({ metadata: { name } }) => name))
  return servers
    .filter(({ hostname }) => names.has(hostname))
    .map(({ hostname: name, address }) => ({ name, address }))
    .toSorted((one, other) => (one.name < other.name ? -1 : 1))
}

export interface NamedNode {
  readonly node: NodeObject
  readonly providerId: string
}

/** Nodes of pools without a provider id. */
export const unnamedNodes = (nodes: readonly NodeObject[], servers: readonly PoolServer[]): readonly NamedNode[] =>
  nodes.flatMap((node) => {
    const server = servers.find(({ hostname }) => hostname === node.metadata.name)
    if (server === undefined || (node.spec.providerID ?? '') !== '') return []
    return [{ node, providerId: `svccloud://${server.zone}/${server.serverId}` }]
  })
