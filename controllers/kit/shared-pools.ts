/** Which nodes reach which shared storage, by their reports, and which arguments mark a move to shared storage. */
import { NODE_REPORT_NAME, nodeNamespace, NodeReport } from '../../resources/instance/index.ts'
import { Node } from '../../resources/node/index.ts'
import type { OperationStanza } from '../../resources/kit/shapes.ts'
import type { Parts } from './parts.ts'

/** Shared storage that the node reaches; none before its first report. */
export const poolsOf = (caches: Parts['caches'], node: string): readonly string[] =>
  caches.of(NodeReport).get({ namespace: nodeNamespace(node), name: NODE_REPORT_NAME })?.spec.pools ?? []

export const hasPool = (caches: Parts['caches'], node: string, pool: string): boolean =>
  poolsOf(caches, node).includes(pool)

/** Nodes that do not reach the shared storage; none when `pool` is undefined. */
export const nodesWithoutPool = (caches: Parts['caches'], pool: string | undefined): readonly string[] =>
  pool === undefined ? [] : nodesOf(caches).filter((node) => !hasPool(caches, node, pool))

/** Nodes that reach no shared storage. */
export const nodesWithoutPools = (caches: Parts['caches']): readonly string[] =>
  nodesOf(caches).filter((node) => poolsOf(caches, node).length === 0)

const nodesOf = (caches: Parts['caches']): readonly string[] =>
  caches
    .of(Node)
    .list()
    .map(({ metadata }) => metadata.name)

/** Arguments of a server's move that moves its storages of tier standard to shared storage, including those on the
 *  disks of its host. Other storages of a running guest move along as they are. */
export const toSharedStorage: Readonly<Record<string, string>> = { storage_tier: 'standard' }
export const isToSharedStorage = ({ arguments: parameters }: Pick<OperationStanza, 'arguments'>): boolean =>
  parameters?.['storage_tier'] === toSharedStorage['storage_tier']
