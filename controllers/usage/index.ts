/** Asks every host what its guests have moved, and adds it to their series. A host that does not answer loses nothing: its counters go on
 *  growing, and the next answer holds what the last ones missed. */
import { pruneUsage, type Reading, recordReadings } from '../../db/usage.ts'
import type { KubeObject } from '../../kit/kube/object.ts'
import { accountOfNamespace } from '../../resources/index.ts'
import { type GuestUsage, Instance, nodeNamespace } from '../../resources/instance.ts'
import { Node, type NodeSpec, type NodeStatus } from '../../resources/platform.ts'
import { asked } from '../database.ts'
import type { Parts } from '../parts.ts'
import { type Shard, WHOLE } from '../shard.ts'

/** What the guests of a node have moved since each began. Throws when the node does not answer. */
export type UsageSource = (node: KubeObject<NodeSpec, NodeStatus>) => Promise<readonly GuestUsage[]>

const COLLECT_MILLISECONDS = 20_000
const NODES_AT_ONCE = 16
const PRUNE_MILLISECONDS = 3_600_000

export interface CollectorOptions extends Parts {
  readonly usageOf: UsageSource
  readonly shard?: Shard
}

/** Collects until the signal aborts. Never throws. */
export async function runUsageCollector(options: CollectorOptions, signal: AbortSignal): Promise<void> {
  const { clock, db, log, shard = WHOLE } = options
  let prunedAt = Number.NEGATIVE_INFINITY
  while (!signal.aborted) {
    await collectUsage(options)
    if (shard.hasCommonWork && clock.monotonicMilliseconds() - prunedAt >= PRUNE_MILLISECONDS) {
      prunedAt = clock.monotonicMilliseconds()
      await pruneUsage(db, clock.now()).catch((error: unknown) => log.warn('usage not pruned', { error }))
    }
    await clock.sleep(COLLECT_MILLISECONDS, signal)
  }
}

/** One look at every node of the shard that answers. */
async function collectUsage(options: CollectorOptions): Promise<void> {
  const { caches, log, shard = WHOLE } = options
  const nodes = caches.of(Node).list().filter(({ spec, status }) => shard.ownsZone(spec.zone) && status?.endpoint !== undefined && status.state !== 'unreachable')
  const waiting = [...nodes]
  const collect = async () => {
    for (let node = waiting.pop(); node !== undefined; node = waiting.pop()) {
      const { name } = node.metadata
      await collectNode(options, node).catch((error: unknown) => log.warn('usage of a node not collected', { node: name, error }))
    }
  }
  await Promise.all(Array.from({ length: NODES_AT_ONCE }, collect))
}

async function collectNode({ caches, db, clock, usageOf }: CollectorOptions, node: KubeObject<NodeSpec, NodeStatus>): Promise<void> {
  const { name } = node.metadata
  const readings = (await usageOf(node)).flatMap((usage): Reading[] => {
    const spec = caches.of(Instance).get({ namespace: nodeNamespace(name), name: usage.instance })?.spec
    const accountId = spec === undefined ? undefined : accountOfNamespace(spec.server.namespace)
    if (spec === undefined || accountId === undefined) return []
    return [{ epoch: `${name}/${usage.epoch}`, accountId, serverId: spec.server.name, serverUid: spec.server.uid, serverName: spec.hostname, counters: usage.counters }]
  })
  await asked(recordReadings(db, readings, clock.now()))
}
