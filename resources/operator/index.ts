/** Operators' view of the platform: the operations of all accounts, and the capacity of its zones. */
import { z } from 'zod'
import { OperationEnvelope, OperationFilters, OperationView } from '../operation/index.ts'
import { EXAMPLE } from '../kit/examples.ts'
import { completeListOf, DateTime, Id, pageOf, PageQuery, ZoneName } from '../kit/shapes.ts'
import { routesUnder } from '../kit/verbs.ts'
import { REASON_LENGTH_MAXIMUM } from '../kit/fields.ts'

const access = (verb: 'get' | 'list' | 'update', resource: 'operations' | 'zones') =>
  ({ verb, resource, scope: 'cluster' }) as const

const operations = routesUnder({
  path: '/v1/operator/operations',
  staff: { reads: 'any', changes: 'operations' },
  access: { resource: 'operations', scope: 'cluster' },
})

export const listOperatorOperations = operations.get('list_operator_operations', '', {
  summary: 'List the operations of the platform and of all accounts',
  description: 'Newest first, without their events.',
  access: access('list', 'operations'),
  query: PageQuery.extend({
    ...OperationFilters,
    node_id: Id.optional().describe('Returns only operations of the node itself.'),
    older_than: DateTime.optional().describe('Returns only operations requested before this time.'),
  }),
  answers: { 200: pageOf(OperationView) },
  budget: 'operation_reads',
})
export const getOperatorOperation = operations.get('get_operator_operation', '/{id}', {
  summary: 'Get an operation with its events',
  answers: { 200: OperationEnvelope },
  budget: 'operation_reads',
})
export const cancelOperatorOperation = operations.post('cancel_operator_operation', '/{id}/cancel', {
  summary: 'Cancel an operation',
  description:
    'For joining, draining, maintenance and agent upgrades of nodes, and for moves of servers before their point ' +
    'of no return. Requires permission to change the object of the operation.',
  audit: 'operation.cancel',
  answers: { 202: OperationEnvelope },
})
export const retryOperatorOperation = operations.post('retry_operator_operation', '/{id}/retry', {
  summary: 'Retry the failed operation of a node',
  description:
    'Starts another operation of the same kind, if the failed one is the newest of its node. Fencing cannot be ' +
    'retried: request it again. Requires permission to change nodes.',
  audit: 'operation.retry',
  starts: ['node.cordon', 'node.uncordon', 'node.drain', 'node.maintenance', 'node.agent_upgrade', 'node.provision'],
})

const Capacity = z.strictObject({
  zone: z.string(),
  cpu_pool: z.string().nullable(),
  node_count: z.int(),
  logical_cpus: z.int(),
  vcpus: z.int().describe('vCPUs that can be sold.'),
  vcpus_used: z.int(),
  memory_mebibytes: z.int(),
  memory_used_mebibytes: z.int(),
  largest_placeable_plan: z.string().nullable(),
  has_ha_headroom: z.boolean().describe('Whether the servers of the largest node would fit on the other nodes.'),
})

const platform = routesUnder({
  path: '/v1/operator',
  staff: { reads: 'any', changes: 'operations' },
  access: { resource: 'operations', scope: 'cluster' },
})

export const getCapacity = platform.get('get_capacity', '/capacity', {
  summary: 'Get the capacity of the zones',
  description: 'One item per zone and processor pool.',
  access: access('list', 'zones'),
  query: z.strictObject({ zone: ZoneName.optional() }),
  answers: { 200: completeListOf(Capacity) },
})

const ControlPlane = z
  .strictObject({
    members: z
      .array(
        z.strictObject({
          node_id: z.string().describe('Machine or address of the member.'),
          role: z.enum(['apiserver', 'kubernetes']).describe('Role of the member.'),
          is_healthy: z.boolean(),
          version: z.string().nullable().describe('Version of the platform; null for software that is not part of it.'),
        }),
      )
      .describe('The answering API server, and its Kubernetes.'),
    quorum: z.boolean().describe('Whether Kubernetes answers a read that requires its quorum.'),
    database: z
      .strictObject({
        primary: z.string().describe('Address of the PostgreSQL primary.'),
        replicas: z.array(z.string()).describe('Names of the replicas.'),
        lag_seconds: z.number().nullable().describe('Lag of the slowest replica; null when there is none.'),
      })
      .describe('State of PostgreSQL, as it reports it.'),
    version: z.string().describe('Version of the platform.'),
    conditions: z
      .array(
        z.strictObject({
          type: z.enum(['WritesJudged']).describe('Type of the condition.'),
          status: z.enum(['True', 'False']).describe('Status of the condition.'),
          reason: z.enum(['WebhookServed', 'NoWebhook']).describe('Machine-readable reason, one word.'),
          message: z.string().describe('For people.'),
        }),
      )
      .describe('WritesJudged: changes with kubectl are validated before they are stored.'),
  })
  .meta({ id: 'ControlPlane' })

export const getControlPlane = platform.get('get_control_plane', '/control-plane', {
  summary: "Get the state of the platform's own control plane",
  answers: { 200: ControlPlane },
})
const NodeIds = z.array(z.string().min(1).max(253)).min(1).max(5).describe('Nodes to add or remove.')
const NOT_OURS =
  'Answers 501 with the reason wherever Kubernetes and PostgreSQL are on one machine or administered by others. ' +
  'That is everywhere now: their own tools scale them.'
export const expandControlPlane = platform.post('expand_control_plane', '/control-plane/expand', {
  summary: 'Scale up the control plane',
  description: NOT_OURS,
  starts: ['control_plane.expand'],
  body: z.strictObject({ node_ids: NodeIds }),
  example: { node_ids: [EXAMPLE.id] },
  refuses: [400, 409, 501, 503],
})
export const shrinkControlPlane = platform.post('shrink_control_plane', '/control-plane/shrink', {
  summary: 'Scale down the control plane',
  description: NOT_OURS,
  starts: ['control_plane.shrink'],
  isDestructive: true,
  body: z.strictObject({ node_ids: NodeIds, reason: z.string().trim().min(1).max(REASON_LENGTH_MAXIMUM) }),
  example: { node_ids: [EXAMPLE.id], reason: EXAMPLE.reason },
  refuses: [400, 409, 501],
})

export const OPERATOR_ROUTES = [
  listOperatorOperations,
  getOperatorOperation,
  cancelOperatorOperation,
  retryOperatorOperation,
  getCapacity,
  getControlPlane,
  expandControlPlane,
  shrinkControlPlane,
] as const
