/** Reads from every host the traffic of its guests, and adds it to their series. A host that does not answer loses
 *  nothing: its counters keep growing, and the next answer contains what the last ones missed. */
import { defined } from '../../../domain/defined.ts'
import { pruneUsage, type CounterReading, recordReadings } from '../../../db/usage/index.ts'
import type { KubeObject } from '../../../kit/kube/object.ts'
import { accountOfNamespace } from '../../../resources/index.ts'
import { type GuestUsage, Instance, nodeNamespace } from '../../../resources/instance/index.ts'
import { Node, type NodeSpec, type NodeStatus } from '../../../resources/node/index.ts'
import { orUnavailable } from '../../kit/outage.ts'
import type { Parts } from '../../kit/parts.ts'
import { type Shard, WHOLE } from '../../kit/shard.ts'
import { Outages } from '../../../kit/sys/outages.ts'

/** The traffic of a node's guests since each started. Throws when the node does not answer. */
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
  const collect = openUsageCollector(options)
  const pruning = new Outages({ log, clock }, 'usage not pruned')
  let prunedAt = Number.NEGATIVE_INFINITY
  while (!signal.aborted) {
    await collect()
    if (shard.hasCommonWork && clock.monotonicMilliseconds() - prunedAt >= PRUNE_MILLISECONDS) {
      prunedAt = clock.monotonicMilliseconds()
      await pruning.attempt(() => pruneUsage(db, clock.now()))
    }
    await clock.sleep(COLLECT_MILLISECONDS, signal)
  }
}

/** The owner of each guest, by the name of its Instance. */
type GuestOwners = ReadonlyMap<string, Pick<CounterReading, 'accountId' | 'serverId' | 'serverUid' | 'serverName'>>

/** Answers a function that asks every node of the shard once. The last traffic of a guest is reported when its Instance
 *  no longer exists, so owners are remembered between rounds. */
export function openUsageCollector(options: CollectorOptions): () => Promise<void> {
  const { caches, clock, log, shard = WHOLE } = options
  const known = new Map<string, GuestOwners>()
  const outages = new Outages({ log, clock }, 'usage of a node not collected')

  async function collectNode(node: KubeObject<NodeSpec, NodeStatus>): Promise<void> {
    const { name } = node.metadata
    const usages = await options.usageOf(node)
    const owners = ownersOf(options, name, usages, known.get(name) ?? new Map())
    known.set(name, owners)
    const readings = usages.flatMap(({ instance, epoch, counters, load }): CounterReading[] => {
      const owner = owners.get(instance)
      return owner === undefined ? [] : [{ epoch: `${name}/${epoch}`, ...owner, counters, ...defined({ load }) }]
    })
    await orUnavailable(recordReadings(options.db, readings, options.clock.now()))
  }

  return async () => {
    const isAsked = ({ spec, status }: KubeObject<NodeSpec, NodeStatus>) =>
      shard.ownsZone(spec.zone) && status?.endpoint !== undefined && status.state !== 'unreachable'
    const { nodes = [], rest = [] } = Object.groupBy(caches.of(Node).list(), (node) =>
      isAsked(node) ? 'nodes' : 'rest',
    )
    for (const { metadata } of rest) outages.over(metadata.name)
    const work = async () => {
      for (let node = nodes.pop(); node !== undefined; node = nodes.pop()) {
        const { name } = node.metadata
        await outages.attempt(() => collectNode(node), { node: name }, name)
      }
    }
    await Promise.all(Array.from({ length: NODES_AT_ONCE }, work))
  }
}

/** Owners of every existing Instance, and of deleted ones for as long as their host reports them. */
function ownersOf(
  { caches }: Pick<Parts, 'caches'>,
  node: string,
  usages: readonly GuestUsage[],
  earlier: GuestOwners,
): GuestOwners {
  const spokenOf = new Set(usages.map(({ instance }) => instance))
  const absent = [...earlier].filter(([name]) => spokenOf.has(name))
  const present = caches
    .of(Instance)
    .inNamespace(nodeNamespace(node))
    .flatMap(({ metadata: { name }, spec: { server, hostname } }) => {
      const accountId = accountOfNamespace(server.namespace)
      return accountId === undefined
        ? []
        : [[name, { accountId, serverId: server.name, serverUid: server.uid, serverName: hostname }] as const]
    })
  return new Map([...absent, ...present])
}
