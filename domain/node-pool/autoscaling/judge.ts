/** Decides when a pool of nodes grows and shrinks, like the cluster autoscaler of Kubernetes. It grows for pods that no
 *  existing node accepts and a new one would. It removes nodes that have been under-used for a while and whose pods fit
 *  elsewhere. Pure; the caller remembers since when. */
import type { Load, LoadNode, LoadPod } from './load.ts'
import { bySize, newRoom, type NodeTemplate, place, type NodeRoom, roomsOf, usageOf, wasteOf } from './rooms.ts'

/** A node is under-used below this share of its processors and of its memory. */
export const UNDERUSED_PART = 0.5
/** How long a node must be under-used before it is removed, and how long after nodes were added nothing is removed. */
export const UNDERUSED_SECONDS = 600
/** How long a node may take to join, and how long its pool does not grow after one did not. */
export const COMING_SECONDS = 900
export const GROWTH_PAUSE_SECONDS = 600

export interface PoolBounds {
  readonly min: number
  readonly max: number
}

/** A pool of the cluster, also one without autoscaling. */
export interface ScalingPool {
  readonly id: string
  /** Null without autoscaling. */
  readonly bounds: PoolBounds | null
  /** The desired number of nodes. */
  readonly count: number
  /** Its nodes in the cluster that are not being removed. */
  readonly nodes: readonly string[]
  /** What a further node would be; undefined when it is unknown. */
  readonly template: NodeTemplate | undefined
  /** An operation is under way already. */
  readonly isBusy: boolean
  /** It must not grow yet: the last node that it added did not join. */
  readonly isPaused: boolean
  /** RFC 3339: when nodes were added last, as far as is known. */
  readonly grownAt: string | undefined
}

export interface Growth {
  readonly poolId: string
  readonly by: number
  /** How many pods it makes room for. */
  readonly pods: number
}

/** Pods that wait for a node and that a new node could run. */
const waitingPods = ({ pods }: Load): readonly LoadPod[] =>
  pods
    .filter(({ node, isUnschedulable, isJudged, isOfNode }) => node === '' && isUnschedulable && isJudged && !isOfNode)
    .toSorted(bySize)

/** Nodes that were requested, and do not exist or are not ready. */
const comingRooms = ({ nodes }: Load, pools: readonly ScalingPool[]): readonly NodeRoom[] =>
  pools.flatMap(({ id, count, nodes: names, template }) => {
    const there = nodes.filter(({ name, isReady }) => isReady && names.includes(name)).length
    return template === undefined
      ? []
      : Array.from({ length: Math.max(0, count - there) }, (_, index) => newRoom(`${id}/${index}`, template))
  })

interface Option extends Growth {
  readonly waste: number
}

function optionOf({ id, bounds, count, template, isBusy, isPaused }: ScalingPool, pods: readonly LoadPod[]): Option[] {
  if (bounds === null || template === undefined || isBusy || isPaused) return []
  const rooms: NodeRoom[] = []
  let left = pods
  while (left.length > 0 && count + rooms.length < bounds.max) {
    const room = newRoom(`${id}/new-${rooms.length}`, template)
    const rest = place(left, [room])
    if (rest.length === left.length) break
    rooms.push(room)
    left = rest
  }
  const waste = rooms.reduce((sum, room) => sum + wasteOf(room, template), 0) / Math.max(rooms.length, 1)
  return rooms.length === 0 ? [] : [{ poolId: id, by: rooms.length, pods: pods.length - left.length, waste }]
}

/** Of the possible pools, the one whose node fits the most pods, then the one that leaves the least of it unused. */
export function judgeGrowth(load: Load, pools: readonly ScalingPool[]): Growth | undefined {
  const left = place(waitingPods(load), [...roomsOf(load), ...comingRooms(load, pools)])
  if (left.length === 0) return undefined
  const [best] = pools
    .flatMap((pool) => optionOf(pool, left))
    .toSorted(
      (one, other) =>
        other.pods - one.pods || one.waste - other.waste || one.by - other.by || (one.poolId < other.poolId ? -1 : 1),
    )
  return best && { poolId: best.poolId, by: best.by, pods: best.pods }
}

export interface UnderusedNode {
  readonly poolId: string
  readonly name: string
  readonly usage: number
}

/** Whether all pods of the node may move and fit on the others, except for those that are deleted with it. */
function canBeEmptied({ name }: LoadNode, load: Load): boolean {
  const moving = load.pods.filter(({ node, isOfNode }) => node === name && !isOfNode)
  if (moving.some(({ stays, isJudged }) => stays !== '' || !isJudged)) return false
  const left = { ...load.budgets }
  for (const budget of moving.flatMap(({ budgets }) => budgets)) {
    left[budget] = (left[budget] ?? 0) - 1
    if (left[budget] < 0) return false
  }
  const others = roomsOf(load).filter(({ node }) => node.name !== name)
  return place(moving.toSorted(bySize), others).length === 0
}

/** Nodes that could be removed, the least used first, regardless of how long they have been under-used. */
export function underusedNodes(load: Load, pools: readonly ScalingPool[]): readonly UnderusedNode[] {
  return pools
    .flatMap(({ id, bounds, count, nodes }) =>
      bounds === null || count <= bounds.min ? [] : nodes.map((name) => ({ poolId: id, name })),
    )
    .flatMap(({ poolId, name }) => {
      const node = load.nodes.find((each) => each.name === name)
      if (node === undefined || !node.isReady || !node.isSchedulable || node.isKept) return []
      const usage = usageOf(node, load.pods)
      return usage < UNDERUSED_PART && canBeEmptied(node, load) ? [{ poolId, name, usage }] : []
    })
    .toSorted((one, other) => one.usage - other.usage || (one.name < other.name ? -1 : 1))
}

/** The node to remove now: one at a time in the whole cluster, and none while other nodes join, leave, or are waited
 *  for. `since` says when each was first observed under-used, RFC 3339. */
export function judgeShrinking(
  load: Load,
  pools: readonly ScalingPool[],
  { since, now }: { readonly since: ReadonlyMap<string, string>; readonly now: Date },
): UnderusedNode | undefined {
  const isOver = (at: string) => now.getTime() - Date.parse(at) >= UNDERUSED_SECONDS * 1_000
  if (pools.some(({ isBusy, grownAt }) => isBusy || (grownAt !== undefined && !isOver(grownAt)))) return undefined
  return underusedNodes(load, pools).find(({ name }) => {
    const at = since.get(name)
    return at !== undefined && isOver(at)
  })
}

/** Keeps the times of nodes that are still under-used, and starts to count for the others. */
export const rememberUnderused = (
  since: ReadonlyMap<string, string>,
  underused: readonly UnderusedNode[],
  now: Date,
): ReadonlyMap<string, string> => new Map(underused.map(({ name }) => [name, since.get(name) ?? now.toISOString()]))

/** Within the bounds. */
export const bounded = (count: number, bounds: PoolBounds | null | undefined): number =>
  bounds == null ? count : Math.min(Math.max(count, bounds.min), bounds.max)
