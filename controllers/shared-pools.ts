/** Which nodes reach which shared storage, by their reports. */
import { NODE_REPORT_NAME, nodeNamespace, NodeReport } from '../resources/instance/index.ts'
import { Node } from '../resources/node/index.ts'
import type { Parts } from './parts.ts'

/** Shared storage that the node reaches; none before its first report. */
export const poolsOf = (caches: Parts['caches'], node: string): readonly string[] =>
  caches.of(NodeReport).get({ namespace: nodeNamespace(node), name: NODE_REPORT_NAME })?.spec.pools ?? []

export const hasPool = (caches: Parts['caches'], node: string, pool: string): boolean =>
  poolsOf(caches, node).includes(pool)

/** Nodes that do not reach the shared storage; none when there is none to reach. */
export const nodesWithoutPool = (caches: Parts['caches'], pool: string | undefined): readonly string[] =>
  pool === undefined
    ? []
    : caches
        .of(Node)
        .list()
        .map(({ metadata }) => metadata.name)
        .filter((node) => !hasPool(caches, node, pool))
