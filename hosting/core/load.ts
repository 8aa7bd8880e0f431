/** State of a cluster for autoscaling: nodes, pods and disruption budgets, read by a user with no other rights. This
 *  code also decides which pods may be moved, by the rules of the cluster autoscaler. */
import { z } from 'zod'
import { type ClusterLoad, LoadNode, type LoadPod } from '../../integrations/control-planes/load.ts'
import { parseQuantity } from '../../integrations/control-planes/quantity.ts'
import { type KubeApi, listAll } from './kube-api.ts'

/** User that reads the state. */
export const AUTOSCALER = 'autoscaler'
export const AUTOSCALER_USER = `system:svccloud:${AUTOSCALER}`
export const AUTOSCALER_RULES = [
  { apiGroups: [''], resources: ['nodes', 'pods'], verbs: ['list'] },
  { apiGroups: ['policy'], resources: ['poddisruptionbudgets'], verbs: ['list'] },
] as const

/** A cluster with more pods is not read, and does not scale. */
const PODS_MAXIMUM = 10_000
const ACTIVE = encodeURIComponent('status.phase!=Succeeded,status.phase!=Failed')
const HOSTNAME = 'kubernetes.io/hostname'
const ANNOTATION = 'cluster-autoscaler.kubernetes.io'
const MIRROR = 'kubernetes.io/config.mirror'
const SYSTEM_NAMESPACE = 'kube-system'
/** Pods of a lower priority neither cause a new node nor keep one. */
const PRIORITY_LEAST = -10

const Words = z.record(z.string(), z.string())
const Quantities = z.record(
  z.string(),
  z.union([z.string(), z.number()]).transform((value) => String(value)),
)

const Node = z.object({
  metadata: z.object({
    name: z.string(),
    labels: Words.default({}),
    annotations: Words.default({}),
    deletionTimestamp: z.string().optional(),
  }),
  spec: z
    .object({
      unschedulable: z.boolean().default(false),
      taints: z.array(z.object({ key: z.string(), value: z.string().default(''), effect: z.string() })).default([]),
    })
    .prefault({}),
  status: z
    .object({
      allocatable: Quantities.default({}),
      conditions: z.array(z.object({ type: z.string(), status: z.string() })).default([]),
    })
    .prefault({}),
})

const Rule = z.object({ key: z.string(), operator: z.string(), values: z.array(z.string()).default([]) })
const Selector = z.object({ matchLabels: Words.default({}), matchExpressions: z.array(Rule).default([]) }).prefault({})
type Selector = z.infer<typeof Selector>
const Apart = z.object({
  topologyKey: z.string(),
  labelSelector: Selector.optional(),
  namespaces: z.array(z.string()).default([]),
  namespaceSelector: z.unknown().optional(),
})
const Affinity = z
  .object({
    nodeAffinity: z
      .object({
        requiredDuringSchedulingIgnoredDuringExecution: z
          .object({
            nodeSelectorTerms: z.array(
              z.object({ matchExpressions: z.array(Rule).default([]), matchFields: z.array(Rule).default([]) }),
            ),
          })
          .optional(),
      })
      .prefault({}),
    podAffinity: z
      .object({ requiredDuringSchedulingIgnoredDuringExecution: z.array(z.unknown()).default([]) })
      .prefault({}),
    podAntiAffinity: z
      .object({ requiredDuringSchedulingIgnoredDuringExecution: z.array(Apart).default([]) })
      .prefault({}),
  })
  .prefault({})

const Resources = z.object({ requests: Quantities.default({}) }).prefault({})
const Container = z.object({
  resources: Resources,
  restartPolicy: z.string().optional(),
  ports: z.array(z.object({ hostPort: z.number().default(0), protocol: z.string().default('TCP') })).default([]),
})
const Pod = z.object({
  metadata: z.object({
    name: z.string(),
    namespace: z.string(),
    labels: Words.default({}),
    annotations: Words.default({}),
    ownerReferences: z.array(z.object({ kind: z.string(), controller: z.boolean().default(false) })).default([]),
    deletionTimestamp: z.string().optional(),
  }),
  spec: z.object({
    nodeName: z.string().default(''),
    priority: z.number().default(0),
    nodeSelector: Words.default({}),
    affinity: Affinity,
    tolerations: z
      .array(
        z.object({
          key: z.string().default(''),
          operator: z.string().default('Equal'),
          value: z.string().default(''),
          effect: z.string().default(''),
        }),
      )
      .default([]),
    containers: z.array(Container),
    initContainers: z.array(Container).default([]),
    overhead: Quantities.default({}),
    resources: Resources,
    topologySpreadConstraints: z.array(z.object({ whenUnsatisfiable: z.string() })).default([]),
    resourceClaims: z.array(z.unknown()).default([]),
    volumes: z
      .array(
        z.object({
          name: z.string(),
          hostPath: z.unknown().optional(),
          emptyDir: z.object({ medium: z.string().default('') }).optional(),
        }),
      )
      .default([]),
  }),
  status: z
    .object({
      nominatedNodeName: z.string().default(''),
      conditions: z
        .array(z.object({ type: z.string(), status: z.string(), reason: z.string().default('') }))
        .default([]),
    })
    .prefault({}),
})
type Pod = z.infer<typeof Pod>

const Budget = z.object({
  metadata: z.object({ name: z.string(), namespace: z.string() }),
  spec: z.object({ selector: Selector.optional() }),
  status: z.object({ disruptionsAllowed: z.number().default(0) }).prefault({}),
})
type Budget = z.infer<typeof Budget>

export async function readLoad(api: KubeApi): Promise<ClusterLoad> {
  // Sequential, because each list may have the maximum size.
  const nodes = await listAll(api, '/api/v1/nodes', Node, PODS_MAXIMUM)
  const pods = await listAll(api, `/api/v1/pods?fieldSelector=${ACTIVE}`, Pod, PODS_MAXIMUM)
  const budgets = await listAll(api, '/apis/policy/v1/poddisruptionbudgets', Budget, PODS_MAXIMUM)
  return {
    nodes: nodes.map(nodeOf),
    pods: pods.filter(({ spec }) => spec.priority >= PRIORITY_LEAST).map((pod) => podOf(pod, budgets)),
    budgets: Object.fromEntries(budgets.map((each) => [budgetName(each), each.status.disruptionsAllowed])),
  }
}

function nodeOf({ metadata, spec, status }: z.infer<typeof Node>): z.infer<typeof LoadNode> {
  return {
    name: metadata.name,
    isReady: status.conditions.some(({ type, status: is }) => type === 'Ready' && is === 'True'),
    isSchedulable: !spec.unschedulable && metadata.deletionTimestamp === undefined,
    isKept: metadata.annotations[`${ANNOTATION}/scale-down-disabled`] === 'true',
    labels: metadata.labels,
    taints: spec.taints,
    allocatable: amountsOf(status.allocatable),
  }
}

const budgetName = ({ metadata }: Budget): string => `${metadata.namespace}/${metadata.name}`

/** Processors in thousandths, all other resources in whole units. */
const amountsOf = (quantities: Readonly<Record<string, string>>): Record<string, number> =>
  Object.fromEntries(
    Object.entries(quantities).map(([name, text]) => [
      name,
      Math.ceil(parseQuantity(text) * (name === 'cpu' ? 1_000 : 1)),
    ]),
  )

function sum(...all: readonly Readonly<Record<string, number>>[]): Record<string, number> {
  const total: Record<string, number> = {}
  for (const each of all) for (const [name, amount] of Object.entries(each)) total[name] = (total[name] ?? 0) + amount
  return total
}
function largest(...all: readonly Readonly<Record<string, number>>[]): Record<string, number> {
  const most: Record<string, number> = {}
  for (const each of all)
    for (const [name, amount] of Object.entries(each)) most[name] = Math.max(most[name] ?? 0, amount)
  return most
}

/** Sums like the scheduler: containers that run together, or the init containers before them when they need more. */
function requestsOf({ containers, initContainers, overhead, resources }: Pod['spec']): Record<string, number> {
  const of = (container: z.infer<typeof Container>) => amountsOf(container.resources.requests)
  let beside: Record<string, number> = {}
  let before: Record<string, number> = {}
  for (const container of initContainers) {
    if (container.restartPolicy === 'Always') beside = sum(beside, of(container))
    before = largest(before, container.restartPolicy === 'Always' ? beside : sum(beside, of(container)))
  }
  const together = largest(sum(beside, ...containers.map(of)), before)
  return sum({ ...together, ...amountsOf(resources.requests) }, amountsOf(overhead), { pods: 1 })
}

function matches({ matchLabels, matchExpressions }: Selector, labels: Readonly<Record<string, string>>): boolean {
  return (
    Object.entries(matchLabels).every(([key, value]) => labels[key] === value) &&
    matchExpressions.every(({ key, operator, values }) => {
      const value = labels[key]
      if (operator === 'Exists') return value !== undefined
      if (operator === 'DoesNotExist') return value === undefined
      const isListed = value !== undefined && values.includes(value)
      return operator === 'In' ? isListed : !isListed
    })
  )
}

type ApartTerm = z.infer<typeof Apart>
/** Whether the term only keeps pods of the same kind on different nodes. Other terms are not supported. */
const isPlain = (
  { topologyKey, labelSelector, namespaces, namespaceSelector }: ApartTerm,
  labels: Pod['metadata']['labels'],
) =>
  topologyKey === HOSTNAME &&
  labelSelector !== undefined &&
  namespaces.length === 0 &&
  namespaceSelector === undefined &&
  matches(labelSelector, labels)

function podOf(pod: Pod, budgets: readonly Budget[]): LoadPod {
  const { metadata, spec, status } = pod
  const { namespace, labels, ownerReferences, annotations } = metadata
  const apart = spec.affinity.podAntiAffinity.requiredDuringSchedulingIgnoredDuringExecution
  const terms = spec.affinity.nodeAffinity.requiredDuringSchedulingIgnoredDuringExecution?.nodeSelectorTerms ?? []
  const own = budgets.filter(
    (budget) =>
      budget.metadata.namespace === namespace &&
      budget.spec.selector !== undefined &&
      matches(budget.spec.selector, labels),
  )
  return {
    name: `${namespace}/${metadata.name}`,
    node: spec.nodeName,
    isUnschedulable:
      metadata.deletionTimestamp === undefined &&
      status.nominatedNodeName === '' &&
      status.conditions.some(
        ({ type, status: is, reason }) => type === 'PodScheduled' && is === 'False' && reason === 'Unschedulable',
      ),
    requests: requestsOf(spec),
    selector: spec.nodeSelector,
    affinity: terms.map(({ matchExpressions }) => matchExpressions),
    tolerations: spec.tolerations,
    hostPorts: spec.containers.flatMap(({ ports }) =>
      ports.filter(({ hostPort }) => hostPort > 0).map(({ hostPort, protocol }) => `${protocol}/${hostPort}`),
    ),
    apart: apart.map(({ labelSelector }) => `${namespace}/${JSON.stringify(labelSelector)}`),
    isOfNode: ownerReferences.some(({ kind }) => kind === 'DaemonSet') || annotations[MIRROR] !== undefined,
    stays: reasonToStay(pod, own),
    budgets: own.map(budgetName),
    isJudged:
      spec.affinity.podAffinity.requiredDuringSchedulingIgnoredDuringExecution.length === 0 &&
      apart.every((term) => isPlain(term, labels)) &&
      terms.every(({ matchFields }) => matchFields.length === 0) &&
      spec.topologySpreadConstraints.every(({ whenUnsatisfiable }) => whenUnsatisfiable !== 'DoNotSchedule') &&
      spec.resourceClaims.length === 0,
  }
}

/** Rules of the cluster autoscaler, in its order. Budgets are counted elsewhere. */
function reasonToStay({ metadata, spec }: Pod, budgets: readonly Budget[]): string {
  const { namespace, annotations, ownerReferences } = metadata
  const answer = annotations[`${ANNOTATION}/safe-to-evict`]
  if (answer === 'true') return ''
  if (answer === 'false') return 'it says that it must not be evicted'
  if (!ownerReferences.some(({ controller }) => controller)) return 'nothing makes it anew'
  if (namespace === SYSTEM_NAMESPACE && budgets.length === 0) return 'it is of the system and has no disruption budget'
  const expendable = (annotations[`${ANNOTATION}/safe-to-evict-local-volumes`] ?? '').split(',')
  const isLocal = spec.volumes.some(
    ({ name, hostPath, emptyDir }) =>
      (hostPath !== undefined || (emptyDir !== undefined && emptyDir.medium !== 'Memory')) &&
      !expendable.includes(name),
  )
  return isLocal ? 'it stores on its node' : ''
}
