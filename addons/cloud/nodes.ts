/** Nodes of the cluster: which servers they are, and which of them get traffic. A node is known by its name, which the
 *  platform gave its server; what it says of itself in the cluster is not believed. Pure. */
import type { NodeObject } from './objects.ts'

/** A server of a pool of the cluster, as the platform has it. */
export interface PoolServer {
  /** Name of its node. */
  readonly hostname: string
  readonly serverId: string
  readonly zone: string
  /** Its IPv4 address in the network of the cluster. */
  readonly address: string
}

/** Where traffic goes. */
export interface Target {
  readonly name: string
  readonly address: string
}

/** Of nodes that get nothing from outside, as Kubernetes names it. */
const EXCLUDED_LABEL = 'node.kubernetes.io/exclude-from-external-load-balancers'

const isReady = ({ status }: NodeObject): boolean =>
  (status?.conditions ?? []).some((condition) => condition.type === 'Ready' && condition.status === 'True')
const isExcluded = ({ metadata: { labels = {}, deletionTimestamp } }: NodeObject): boolean =>
  labels[EXCLUDED_LABEL] !== undefined || deletionTimestamp !== undefined

/** What of a node decides here, as one text. */
export const nodeDigest = (node: NodeObject): string =>
  JSON.stringify([node.metadata.uid, isReady(node), isExcluded(node), node.spec.providerID])

/** Nodes of pools that are ready and not excluded, by name. While none is ready, all that are not excluded: a control
 *  plane that hears of no node says so of all at once, and the balancer finds out itself which of them answer. */
export function targetsOf(nodes: readonly NodeObject[], servers: readonly PoolServer[]): readonly Target[] {
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

/** Nodes of pools that do not say yet which server they are. */
export const unnamedNodes = (nodes: readonly NodeObject[], servers: readonly PoolServer[]): readonly NamedNode[] =>
  nodes.flatMap((node) => {
    const server = servers.find(({ hostname }) => hostname === node.metadata.name)
    if (server === undefined || (node.spec.providerID ?? '') !== '') return []
    return [{ node, providerId: `svccloud://${server.zone}/${server.serverId}` }]
  })
