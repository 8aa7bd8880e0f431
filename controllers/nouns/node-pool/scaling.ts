/** Autoscaling of a pool: its inputs, and how its decision becomes a change of the pool. Each pool judges all pools of
 *  its cluster together, in the same way; each acts for itself only. */
import {
  bounded,
  COMING_SECONDS,
  GROWTH_PAUSE_SECONDS,
  judgeGrowth,
  judgeShrinking,
  rememberUnderused,
  type ScalingPool,
  underusedNodes,
} from '../../../domain/node-pool/autoscaling/judge.ts'
import type { Load, LoadNode } from '../../../domain/node-pool/autoscaling/load.ts'
import { allocatableOf, type NodeTemplate } from '../../../domain/node-pool/autoscaling/rooms.ts'
import { isDrainOver, nodeNumberOf } from '../../../domain/node-pool/rules.ts'
import type { Plan } from '../../../resources/catalog/index.ts'
import type { NodePoolSpec } from '../../../resources/node-pool/index.ts'
import type { KubeObject } from '../../../kit/kube/object.ts'
import { SYSTEM_ACTOR, type OperationStart } from '../../kit/operation/direct-edit.ts'
import { activeOperation, operationActionOf } from '../../kit/operation/stanza.ts'
import { marksOf, type Slot, wantedNumbers } from './nodes.ts'
import type { Drain, Input, NodePoolEffect, NodePoolObject, Scaling } from './observed.ts'

type PlanObject = KubeObject<(typeof Plan)['spec']['_output']>

const HOSTNAME_LABEL = 'kubernetes.io/hostname'
/** Taints that describe the state of one node, which a new node would not have. */
const TRANSIENT_TAINT = /^node(\.cloudprovider)?\.kubernetes\.io\//

/** Since when nodes of each cluster have been under-used, and when the cluster was last looked at, oldest first. A
 *  process that starts counts from the beginning. */
export type UnderusedMemory = Map<string, { readonly lookedAt: number; readonly since: ReadonlyMap<string, string> }>

/** Pools are looked at every few seconds: after this time their cluster no longer exists, or belongs to another
 *  controller. */
const FORGOTTEN_MILLISECONDS = 3_600_000

interface Situation {
  readonly load: Load
  readonly pools: readonly NodePoolObject[]
  readonly region: string
  readonly now: Date
  planOf(name: string): PlanObject | undefined
}

/** The input of the judgement, including what earlier reconciles remembered. */
export function scalingFor(memory: UnderusedMemory, cluster: string, looked: Situation): Scaling {
  const { load, now } = looked
  const pools = looked.pools.map((pool) => scalingPoolOf(pool, looked))
  const since = rememberUnderused(memory.get(cluster)?.since ?? new Map(), underusedNodes(load, pools), now)
  memory.delete(cluster)
  memory.set(cluster, { lookedAt: now.getTime(), since })
  for (const [other, { lookedAt }] of memory) {
    if (now.getTime() - lookedAt < FORGOTTEN_MILLISECONDS) break
    memory.delete(other)
  }
  return { load, pools, underusedSince: since }
}

function scalingPoolOf(pool: NodePoolObject, { load, region, now, planOf }: Situation): ScalingPool {
  const { metadata, spec, status } = pool
  const named = { name: spec.name, uid: metadata.uid ?? '' }
  const wanted = wantedNumbers(pool, spec.count)
  const own = load.nodes.filter(({ name }) => nodeNumberOf(named, name) !== undefined)
  const operation = spec.operation
  const isLeaving = metadata.deletionTimestamp !== undefined || operation?.kind === 'node_pool.delete'
  const failedAt = status?.growthFailedAt
  const pause = GROWTH_PAUSE_SECONDS * 1_000
  return {
    id: metadata.name,
    bounds: isLeaving || status?.isMade !== true ? null : (spec.autoscaling ?? null),
    count: isLeaving ? 0 : spec.count,
    nodes: own.map(({ name }) => name).filter((name) => wanted.has(nodeNumberOf(named, name) ?? -1)),
    template: templateOf(pool, { own, load, region, plan: planOf(spec.plan) }),
    isBusy: activeOperation(pool) !== undefined || isLeaving,
    isPaused: failedAt !== undefined && now.getTime() - Date.parse(failedAt) < pause,
    grownAt: operationActionOf(operation) === 'shrink' ? undefined : operation?.requestedAt,
  }
}

/** Like the pool's existing nodes; from its plan while it has none. */
function templateOf(
  pool: NodePoolObject,
  {
    own,
    load,
    region,
    plan,
  }: Pick<Situation, 'load' | 'region'> & { own: readonly LoadNode[]; plan: PlanObject | undefined },
): NodeTemplate | undefined {
  const marks = marksOf(pool, region)
  const sample = own.find(({ isReady }) => isReady)
  if (sample !== undefined) {
    const { [HOSTNAME_LABEL]: _own, ...labels } = sample.labels
    const ofNode = load.pods.filter(({ node, isOfNode }) => node === sample.name && isOfNode)
    const overhead: Record<string, number> = {}
    for (const { requests } of ofNode)
      for (const [name, amount] of Object.entries(requests)) overhead[name] = (overhead[name] ?? 0) + amount
    const taints = sample.taints.filter(({ key }) => !TRANSIENT_TAINT.test(key))
    return { labels, taints, allocatable: sample.allocatable, overhead }
  }
  if (plan === undefined) return undefined
  const labels = { 'kubernetes.io/os': 'linux', 'kubernetes.io/arch': 'amd64', ...marks.labels }
  return { labels, taints: marks.taints, allocatable: allocatableOf(plan.spec), overhead: {} }
}

/** The change that is due; undefined when none is. */
export function dueScaling({ root, observed, now }: Input): (OperationStart & { readonly actor: string }) | undefined {
  const { count, autoscaling } = root.spec
  if (autoscaling === undefined || root.status?.isMade !== true) return undefined
  const { scaling, mayGrow } = observed
  const within = bounded(count, autoscaling)
  if (within < count || (within > count && mayGrow)) return started('scale', { count: within })
  if (scaling === undefined) return undefined
  const { load, pools, underusedSince: since } = scaling
  const growth = judgeGrowth(load, pools)
  if (growth !== undefined && !mayGrow) return undefined
  if (growth !== undefined)
    return growth.poolId === root.metadata.name
      ? started('grow', grown(root, growth.by, observed.numbersInUse))
      : undefined
  const leaving = judgeShrinking(load, pools, { since, now })
  return leaving?.poolId === root.metadata.name ? started('shrink', without(root, [leaving.name])) : undefined
}

const started = (action: string, spec: Pick<NodePoolSpec, 'count' | 'skipped'>) => ({
  kind: 'node_pool.sync' as const,
  arguments: { action },
  actor: SYSTEM_ACTOR,
  spec,
})

/** Released numbers are used again first, once nothing of their nodes is left: at most as many as the pool grows by, so
 *  that no existing node has to make room. */
function grown(
  pool: NodePoolObject,
  by: number,
  numbersInUse: readonly number[],
): Pick<NodePoolSpec, 'count' | 'skipped'> {
  const before = pool.spec.skipped ?? []
  const back = before.filter((number) => !numbersInUse.includes(number)).slice(0, by)
  return { count: pool.spec.count + by, skipped: before.filter((number) => !back.includes(number)) }
}

/** The pool without those nodes, but with all others. */
function without(pool: NodePoolObject, names: readonly string[]): Pick<NodePoolSpec, 'count' | 'skipped'> {
  const named = { name: pool.spec.name, uid: pool.metadata.uid ?? '' }
  const numbers = names.flatMap((name) => nodeNumberOf(named, name) ?? [])
  const skipped = [...new Set([...(pool.spec.skipped ?? []), ...numbers])].toSorted((one, other) => one - other)
  return { count: pool.spec.count - numbers.length, skipped }
}

/** A released node whose pods did not leave is taken back, and a new node that does not join is given up: each by a
 *  change of the spec, which the next reconcile follows. */
export function reconsidered(
  { root, now }: Pick<Input, 'root' | 'now'>,
  slots: readonly Slot[],
  drains: readonly Drain[],
): { readonly actions: readonly NodePoolEffect[]; readonly status: object } | undefined {
  const { spec } = root
  const stuck = drains.filter(
    ({ hostname, since, isDone, isCalledOff }) =>
      !isDone && isCalledOff !== true && isDrainOver(since, now) && slotOf(slots, hostname)?.isLetGo === true,
  )
  if (stuck.length > 0) {
    const names = stuck.map(({ hostname }) => hostname)
    return { actions: [{ do: 'effect', name: 'keep', input: { names, known: [...drains] } }], status: {} }
  }
  const staying = drains.flatMap(({ hostname, isCalledOff }) => {
    const slot = slotOf(slots, hostname)
    return isCalledOff === true && slot !== undefined && slot.isLetGo ? [slot.number] : []
  })
  if (staying.length > 0) {
    const skipped = (spec.skipped ?? []).filter((number) => !staying.includes(number))
    return { actions: [changed({ count: spec.count + staying.length, skipped })], status: {} }
  }
  return givenUp({ root, now }, slots)
}

const changed = (spec: Pick<NodePoolSpec, 'count' | 'skipped'>) => ({ do: 'change', patch: { spec } }) as const
const slotOf = (slots: readonly Slot[], hostname: string) => slots.find(({ name }) => name === hostname)

/** Nodes that a pool grew by and that have not joined in time. */
function givenUp({ root, now }: Pick<Input, 'root' | 'now'>, slots: readonly Slot[]) {
  const { operation, autoscaling, count } = root.spec
  if (operation === undefined || operationActionOf(operation) !== 'grow' || autoscaling === undefined) return undefined
  if (now.getTime() - Date.parse(operation.requestedAt) < COMING_SECONDS * 1_000) return undefined
  const most = Math.max(0, count - autoscaling.min)
  const missing = slots.filter(({ isWanted, node }) => isWanted && node === undefined).map(({ name }) => name)
  if (missing.length === 0 || most === 0) return undefined
  const status = { growthFailedAt: now.toISOString() }
  return { actions: [changed(without(root, missing.slice(-most)))], status }
}
