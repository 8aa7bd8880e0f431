/** Public shape and routes of node pools of managed Kubernetes clusters, and the conversion from the stored shape. */
import { z } from 'zod'
import { MINOR_PATTERN } from '../../domain/kubernetes-cluster/rules.ts'
import {
  nodeLabelsFault,
  NODES_MAXIMUM,
  POOL_NAME,
  POOL_STATES,
  type PoolState,
  TAINT_EFFECTS,
  TAINTS_MAXIMUM,
  taintsFault,
} from '../../domain/node-pool/rules.ts'
import { activeOperationOf, OperationView, namedTarget, toOperationView } from '../operation/index.ts'
import { Id, Labels, type Stored, ZoneName } from '../kit/shapes.ts'
import { routesUnder } from '../kit/verbs.ts'
import { viewOf } from '../kit/view.ts'
import type { NodePoolSpec, NodePoolStatus } from './stored.ts'

const Taint = z
  .strictObject({
    key: z.string().min(1).max(253).describe('Name of the taint.'),
    value: z.string().max(63).describe('Value of the taint; may be empty.'),
    effect: z.enum(TAINT_EFFECTS).describe('Effect on pods.'),
  })
  .meta({ id: 'KubernetesTaint' })
const Autoscaling = z
  .strictObject({
    min: z.int().min(0).max(NODES_MAXIMUM).describe('Minimum number of nodes.'),
    max: z.int().min(1).max(NODES_MAXIMUM).describe('Maximum number of nodes.'),
  })
  .refine(({ min, max }) => min <= max, 'max must not be below min')
  .meta({ id: 'KubernetesAutoscaling' })

const Count = z.int().min(0).max(NODES_MAXIMUM).describe('Number of nodes.')
const MaxUnavailable = z
  .int()
  .min(1)
  .max(NODES_MAXIMUM)
  .describe('Maximum number of nodes that may be unavailable at a time.')
const NodeLabels = Labels.superRefine((labels, context) => {
  const message = nodeLabelsFault(labels)
  if (message !== undefined) context.addIssue({ code: 'custom', message })
}).describe('Labels of its nodes in the cluster.')
const Taints = z
  .array(Taint)
  .max(TAINTS_MAXIMUM)
  .superRefine((taints, context) => {
    const message = taintsFault(taints)
    if (message !== undefined) context.addIssue({ code: 'custom', message })
  })
  .describe('Taints of its nodes.')
const MaybeAutoscaling = Autoscaling.nullable().describe(
  'Bounds within which count follows the needs of pods; null disables autoscaling. A given count must be within them.',
)

export const NewNodePool = z
  .strictObject({
    name: z
      .string()
      .min(POOL_NAME.least)
      .max(POOL_NAME.most)
      .regex(POOL_NAME.pattern, 'must be lower-case letters, digits and dashes'),
    plan: z.string().min(1).max(63).describe('Plan of its servers.'),
    count: Count,
    zones: z
      .array(ZoneName)
      .min(1)
      .max(8)
      .optional()
      .describe(
        'Zones of its nodes. Defaults to the zone of the cluster, which is the only possible one because its ' +
          'network is there.',
      ),
    labels: NodeLabels.default({}),
    taints: Taints.default([]),
    autoscaling: MaybeAutoscaling.default(null),
    public_ipv4: z.boolean().default(false),
    max_unavailable: MaxUnavailable.default(1),
  })
  .meta({ id: 'CreateKubernetesNodePool' })
export type NewNodePool = z.infer<typeof NewNodePool>

export const UpdateNodePool = z
  .strictObject({
    count: Count.optional(),
    autoscaling: MaybeAutoscaling.optional(),
    labels: NodeLabels.optional(),
    taints: Taints.optional(),
    version: z
      .string()
      .regex(MINOR_PATTERN, 'must be a minor version such as 1.36')
      .optional()
      .describe('Minor version for its nodes, at most that of the control plane. A change replaces the nodes.'),
    max_unavailable: MaxUnavailable.optional(),
  })
  .meta({ id: 'UpdateKubernetesNodePool' })
export type UpdateNodePool = z.infer<typeof UpdateNodePool>

const NodeView = z
  .strictObject({
    server_id: z.string(),
    hostname: z.string(),
    zone: z.string(),
    state: z.string().describe('State of the server.'),
    is_ready: z.boolean().describe('Whether it reports Ready.'),
    kubelet_version: z.string().describe('Empty until it has joined.'),
    public_ipv6: z.string().nullable(),
    public_ipv4: z.string().nullable(),
  })
  .meta({ id: 'KubernetesNode' })

export const NodePoolView = z
  .strictObject({
    id: z.string(),
    cluster_id: z.string().describe('Cluster of the pool.'),
    name: z.string(),
    plan: z.string(),
    count: z.int().describe('Desired number of nodes.'),
    zones: z.array(z.string()),
    labels: z.record(z.string(), z.string()),
    taints: z.array(Taint).describe('Taints of its nodes.'),
    autoscaling: Autoscaling.nullable().describe(
      'Bounds within which count follows the needs of pods; null when autoscaling is disabled.',
    ),
    public_ipv4: z.boolean(),
    max_unavailable: z.int().describe('Maximum number of nodes that may be unavailable at a time.'),
    version: z.string().describe('Minor version that its nodes run, or are being replaced to run.'),
    state: z.enum(POOL_STATES),
    nodes: z.array(NodeView).describe('Its nodes.'),
    active_operation: OperationView.nullable(),
  })
  .meta({ id: 'KubernetesNodePool' })
export type NodePoolView = z.infer<typeof NodePoolView>
export type StoredNodePool = Stored<NodePoolSpec, NodePoolStatus>

/** `error` when its creation failed, or when a later change missed its deadline, until that change is complete. */
export function poolStateOf(pool: StoredNodePool): PoolState {
  const { spec, status, isDeleting } = pool
  const active = activeOperationOf(pool)
  if (isDeleting || spec.operation?.kind === 'node_pool.delete') return 'deleting'
  if (status?.isMade !== true) {
    const isFailed = status?.operation?.status === 'failed' && status.operation.id === spec.operation?.id
    return isFailed ? 'error' : 'creating'
  }
  if (active !== undefined) return spec.operation?.arguments?.['action'] === 'upgrade' ? 'upgrading' : 'scaling'
  return (status.fault ?? '') === '' ? 'running' : 'error'
}

export function toNodePoolView(pool: StoredNodePool): NodePoolView {
  const { name: id, spec, status } = pool
  const operation = activeOperationOf(pool)
  return viewOf(NodePoolView, spec, {
    id,
    zones: [spec.zone],
    state: poolStateOf(pool),
    nodes: (status?.nodes ?? []).map((node) => ({
      server_id: node.serverId,
      hostname: node.hostname,
      zone: spec.zone,
      state: node.state,
      is_ready: node.isReady,
      kubelet_version: node.kubeletVersion,
      public_ipv6: node.publicIpv6 ?? null,
      public_ipv4: node.publicIpv4 ?? null,
    })),
    active_operation: operation === undefined ? null : toOperationView(operation, namedTarget('node_pool', pool)),
  })
}

const OfCluster = z.strictObject({ id: Id })
const OfPool = OfCluster.extend({ node_pool_id: Id.describe('Id of the node pool.') })
const Begun = z.strictObject({ node_pool: NodePoolView, operation: OperationView })

const pools = routesUnder({ path: '/v1/kubernetes-clusters' })

export const createKubernetesNodePool = pools.post('create_kubernetes_node_pool', '/{id}/node-pools', {
  summary: 'Create a node pool in a Kubernetes cluster',
  description: 'Its nodes are servers of the account and billed as servers. They join automatically.',
  needs: 'standing',
  audit: 'node_pool.create',
  starts: ['node_pool.sync'],
  body: NewNodePool,
  example: { name: 'web', plan: 'starter-1c-1g', count: 2 },
  answers: { 202: Begun },
  refuses: [400, 402, 404, 409, 422, 503],
})

export const getKubernetesNodePool = pools.get('get_kubernetes_node_pool', '/{id}/node-pools/{node_pool_id}', {
  summary: 'Get a node pool of a Kubernetes cluster',
  params: OfPool,
  answers: { 200: z.strictObject({ node_pool: NodePoolView }) },
})

export const updateKubernetesNodePool = pools.patch('update_kubernetes_node_pool', '/{id}/node-pools/{node_pool_id}', {
  summary: 'Update a node pool of a Kubernetes cluster',
  description:
    'New nodes are created immediately. Surplus nodes, the youngest first, and nodes replaced for another version ' +
    'are drained. For a pool in error, this retries the change that missed its deadline.',
  needs: 'standing',
  audit: 'node_pool.update',
  starts: ['node_pool.sync'],
  params: OfPool,
  body: UpdateNodePool,
  example: { count: 3 },
  answers: { 202: Begun },
  refuses: [400, 402, 404, 409, 422, 503],
})

export const deleteKubernetesNodePool = pools.delete('delete_kubernetes_node_pool', '/{id}/node-pools/{node_pool_id}', {
  summary: 'Delete a node pool of a Kubernetes cluster with its nodes',
  description: 'Drains its nodes first. Pod disruption budgets are respected for ten minutes.',
  starts: ['node_pool.delete'],
  params: OfPool,
})

export const NODE_POOL_ROUTES = [
  createKubernetesNodePool,
  getKubernetesNodePool,
  updateKubernetesNodePool,
  deleteKubernetesNodePool,
] as const
