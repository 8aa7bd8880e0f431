/** Node pools of managed Kubernetes clusters as the API shows them. */
import { z } from 'zod'
import { OperationView } from '../operation/index.ts'
import { Labels, ZoneName } from '../shapes.ts'

const POOL_NAME = /^[a-z0-9]([-a-z0-9]*[a-z0-9])?$/
const NODES_MAXIMUM = 100
const TAINTS_MAXIMUM = 16

export const Taint = z
  .strictObject({
    key: z.string().min(1).max(253).describe('Name of the taint.'),
    value: z.string().max(63).describe('Its value; may be empty.'),
    effect: z.enum(['NoSchedule', 'PreferNoSchedule', 'NoExecute']).describe('What it does to pods.'),
  })
  .meta({ id: 'KubernetesTaint' })
export const Autoscaling = z
  .strictObject({
    min: z.int().min(0).max(NODES_MAXIMUM).describe('Never fewer nodes than that.'),
    max: z.int().min(1).max(NODES_MAXIMUM).describe('Never more nodes than that.'),
  })
  .refine(({ min, max }) => min <= max, 'max must not be below min')
  .meta({ id: 'KubernetesAutoscaling' })

export const NewNodePool = z
  .strictObject({
    name: z.string().min(1).max(40).regex(POOL_NAME, 'must be lower-case letters, digits and dashes'),
    plan: z.string().min(1).max(63).describe('Plan of its servers.'),
    count: z.int().min(0).max(NODES_MAXIMUM).describe('How many nodes it has.'),
    zones: z
      .array(ZoneName)
      .min(1)
      .max(8)
      .optional()
      .describe('Zones of its nodes; that of the cluster when left out.'),
    labels: Labels.default({}),
    taints: z.array(Taint).max(TAINTS_MAXIMUM).default([]).describe('Taints of its nodes.'),
    autoscaling: Autoscaling.nullable().default(null).describe('Between which bounds count follows the pods.'),
    public_ipv4: z.boolean().default(false),
    max_unavailable: z.int().min(1).max(NODES_MAXIMUM).default(1).describe('How many nodes may be away at a time.'),
  })
  .meta({ id: 'NewKubernetesNodePool' })
export type NewNodePool = z.infer<typeof NewNodePool>

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
    cluster_id: z.string().describe('The cluster that it belongs to.'),
    name: z.string(),
    plan: z.string(),
    count: z.int().describe('How many nodes it shall have.'),
    zones: z.array(z.string()),
    labels: z.record(z.string(), z.string()),
    taints: z.array(Taint).describe('Taints of its nodes.'),
    autoscaling: Autoscaling.nullable().describe('Between which bounds count follows the pods; null: it does not.'),
    public_ipv4: z.boolean(),
    version: z.string().describe('Minor version that its nodes run or roll to.'),
    state: z.enum(['creating', 'running', 'scaling', 'upgrading', 'deleting', 'deleted', 'error']),
    nodes: z.array(NodeView).describe('Its nodes.'),
    active_operation: OperationView.nullable(),
  })
  .meta({ id: 'KubernetesNodePool' })
