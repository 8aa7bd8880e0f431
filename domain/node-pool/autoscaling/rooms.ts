/** Room for pods on existing and possible nodes: whether a pod fits, as the scheduler of Kubernetes would decide. */
import type { Amounts, LabelRule, Load, LoadNode, LoadPod, NodeTaint, Toleration } from './load.ts'

const DISK = 'ephemeral-storage'
/** Effects that keep a pod off a node, or evict it. */
const REPELLING: readonly string[] = ['NoSchedule', 'NoExecute']

/** A node and its free resources. */
export interface NodeRoom {
  readonly node: Pick<LoadNode, 'name' | 'labels' | 'taints'>
  readonly free: Record<string, number>
  readonly hostPorts: Set<string>
  readonly apart: Set<string>
}

/** A node with only the pods that run on every node. */
export interface NodeTemplate extends Pick<LoadNode, 'labels' | 'taints' | 'allocatable'> {
  /** Resources of the pods that run on every node. */
  readonly overhead: Amounts
}

const subtract = (free: Record<string, number>, amounts: Amounts): void => {
  for (const [name, amount] of Object.entries(amounts)) free[name] = (free[name] ?? 0) - amount
}

/** Subtracts the pod from the room. */
export function occupy(room: NodeRoom, { requests, hostPorts, apart }: LoadPod): void {
  subtract(room.free, requests)
  for (const port of hostPorts) room.hostPorts.add(port)
  for (const group of apart) room.apart.add(group)
}

export function newRoom(name: string, { labels, taints, allocatable, overhead }: NodeTemplate): NodeRoom {
  const free = { ...allocatable }
  subtract(free, overhead)
  return { node: { name, labels, taints }, free, hostPorts: new Set(), apart: new Set() }
}

/** Rooms of the nodes that accept pods, without the resources that their pods use. */
export function roomsOf({ nodes, pods }: Load): readonly NodeRoom[] {
  const rooms = new Map(
    nodes
      .filter(({ isReady, isSchedulable }) => isReady && isSchedulable)
      .map((node) => [node.name, newRoom(node.name, { ...node, overhead: {} })]),
  )
  for (const pod of pods) {
    const room = rooms.get(pod.node)
    if (room !== undefined) occupy(room, pod)
  }
  return [...rooms.values()]
}

const tolerates = (tolerations: readonly Toleration[], taint: NodeTaint): boolean =>
  tolerations.some(
    ({ key, operator, value, effect }) =>
      (effect === '' || effect === taint.effect) &&
      (key === '' ? operator === 'Exists' : key === taint.key) &&
      (operator === 'Exists' || value === taint.value),
  )

function holds({ key, operator, values }: LabelRule, labels: Readonly<Record<string, string>>): boolean {
  const value = labels[key]
  switch (operator) {
    case 'In':
      return value !== undefined && values.includes(value)
    case 'NotIn':
      return value === undefined || !values.includes(value)
    case 'Exists':
      return value !== undefined
    case 'DoesNotExist':
      return value === undefined
    case 'Gt':
      return Number(value) > Number(values[0])
    case 'Lt':
      return Number(value) < Number(values[0])
    default:
      return false
  }
}

/** Whether the scheduler would put the pod there. */
export function fits(pod: LoadPod, { node, free, hostPorts, apart }: NodeRoom): boolean {
  const { requests, selector, affinity, tolerations } = pod
  return (
    Object.entries(requests).every(([name, amount]) => amount === 0 || amount <= (free[name] ?? 0)) &&
    Object.entries(selector).every(([key, value]) => node.labels[key] === value) &&
    (affinity.length === 0 || affinity.some((rules) => rules.every((rule) => holds(rule, node.labels)))) &&
    node.taints.every((taint) => !REPELLING.includes(taint.effect) || tolerates(tolerations, taint)) &&
    pod.hostPorts.every((port) => !hostPorts.has(port)) &&
    pod.apart.every((group) => !apart.has(group))
  )
}

/** The biggest first, so that small ones fill the remaining room. */
export const bySize = (one: LoadPod, other: LoadPod): number =>
  (other.requests['cpu'] ?? 0) - (one.requests['cpu'] ?? 0) ||
  (other.requests['memory'] ?? 0) - (one.requests['memory'] ?? 0) ||
  (one.name < other.name ? -1 : 1)

/** Puts each into the first room that fits it; returns those that fit none. */
export const place = (pods: readonly LoadPod[], rooms: readonly NodeRoom[]): readonly LoadPod[] =>
  pods.filter((pod) => {
    const room = rooms.find((each) => fits(pod, each))
    if (room !== undefined) occupy(room, pod)
    return room === undefined
  })

/** The used share of the node, of processors or memory, whichever is more: from 0 to 1. */
export function usageOf({ name, allocatable }: LoadNode, pods: readonly LoadPod[]): number {
  const use: Record<string, number> = {}
  for (const pod of pods) if (pod.node === name) subtract(use, pod.requests)
  return Math.max(
    ...['cpu', 'memory'].map((resource) => {
      const all = allocatable[resource] ?? 0
      return all === 0 ? 1 : -(use[resource] ?? 0) / all
    }),
  )
}

/** The unused share of the room, of processors and memory together, relative to its total. */
export const wasteOf = ({ free }: NodeRoom, { allocatable }: NodeTemplate): number =>
  ['cpu', 'memory'].reduce((sum, name) => sum + (free[name] ?? 0) / Math.max(allocatable[name] ?? 0, 1), 0) / 2

const MEBIBYTE = 1024 ** 2
const GIBIBYTE = 1024 ** 3
/** Resources that the image of nodes reserves: for its own programs, and the minimum that a kubelet keeps free. */
const KEPT_CPU = 100
const KEPT_MEMORY = (352 + 100) * MEBIBYTE
/** Memory that the kernel reserves for itself, and disk that a file system and the system use. */
const KERNEL_PART = 0.06
const USABLE_DISK_PART = 0.8
const PODS_OF_NODE = 110

/** What a node of that size leaves to pods, where no existing one can be asked: an estimate that is rather too low than
 *  too high. */
export const allocatableOf = (size: {
  readonly cores: number
  readonly memoryMebibytes: number
  readonly storageGibibytes: number
}): Amounts => ({
  cpu: size.cores * 1_000 - KEPT_CPU,
  memory: Math.floor(size.memoryMebibytes * MEBIBYTE * (1 - KERNEL_PART)) - KEPT_MEMORY,
  [DISK]: Math.floor(size.storageGibibytes * GIBIBYTE * USABLE_DISK_PART),
  pods: PODS_OF_NODE,
})
