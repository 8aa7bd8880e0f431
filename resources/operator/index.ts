/** What operators see of the platform as a whole: the operations of all accounts, and what its zones have room for. */
import { z } from 'zod'
import { OPERATION_KINDS, OPERATION_STATUSES } from '../../domain/operations.ts'
import { OperationEnvelope, OperationView } from '../operation/index.ts'
import { EXAMPLE } from '../kit/examples.ts'
import { completeListOf, DateTime, Id, pageOf, PageQuery, ZoneName } from '../kit/shapes.ts'
import { routesUnder } from '../kit/verbs.ts'

const AREA = "The platform's own control plane, operations, capacity"
const access = (verb: 'get' | 'list' | 'update', resource: 'operations' | 'zones') =>
  ({ verb, resource, scope: 'cluster' }) as const

const operations = routesUnder({
  path: '/v1/operator/operations',
  area: AREA,
  staff: { reads: 'any', changes: 'operations' },
  access: { resource: 'operations', scope: 'cluster' },
})

export const listOperatorOperations = operations.get('list_operator_operations', '', {
  summary: 'List the operations of the platform and of all accounts',
  description: 'Newest first, without their events.',
  access: access('list', 'operations'),
  query: PageQuery.extend({
    kind: z.enum(OPERATION_KINDS).optional(),
    status: z.enum(OPERATION_STATUSES).optional(),
    node_id: Id.optional().describe('Only those of the node itself.'),
    older_than: DateTime.optional().describe('Only those that were asked for before this instant.'),
  }),
  answers: { 200: pageOf(OperationView) },
  budget: 'operation_reads',
})
export const getOperatorOperation = operations.get('get_operator_operation', '/{id}', {
  summary: 'Read an operation with its events',
  answers: { 200: OperationEnvelope },
  budget: 'operation_reads',
})
export const cancelOperatorOperation = operations.post('cancel_operator_operation', '/{id}/cancel', {
  summary: 'Cancel an operation',
  description:
    'Joining, draining, maintenance and agent upgrades of nodes; moves of servers before their point of no ' +
    'return. Who may not change what the operation works on may not cancel it.',
  audit: 'operation.cancel',
  answers: { 202: OperationEnvelope },
})
export const retryOperatorOperation = operations.post('retry_operator_operation', '/{id}/retry', {
  summary: 'Ask again for what an operation of a node failed to do',
  description:
    'Another operation of the same kind, as long as the failed one is the newest of its node. A fencing is never ' +
    'tried again: it is asked for anew. Who may not change nodes may not.',
  audit: 'operation.retry',
  starts: ['node.cordon', 'node.uncordon', 'node.drain', 'node.maintenance', 'node.agent_upgrade', 'node.provision'],
})

const Capacity = z.strictObject({
  zone: z.string(),
  cpu_pool: z.string().nullable(),
  node_count: z.int(),
  logical_cpus: z.int(),
  vcpus: z.int().describe('That can be sold.'),
  vcpus_used: z.int(),
  memory_mebibytes: z.int(),
  memory_used_mebibytes: z.int(),
  largest_placeable_plan: z.string().nullable(),
  has_ha_headroom: z.boolean().describe('The servers of the largest node would find room on the others.'),
})

const platform = routesUnder({
  path: '/v1/operator',
  area: AREA,
  staff: { reads: 'any', changes: 'operations' },
  access: { resource: 'operations', scope: 'cluster' },
})

export const getCapacity = platform.get('get_capacity', '/capacity', {
  summary: 'What the zones have room for',
  description: 'One item per zone and pool of processors.',
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
          role: z.enum(['apiserver', 'kubernetes']).describe('What it does.'),
          is_healthy: z.boolean(),
          version: z.string().nullable().describe('Of the platform; null for what is not its own.'),
        }),
      )
      .describe('The API server that answers, and the Kubernetes that it writes to.'),
    quorum: z.boolean().describe('Whether Kubernetes answers a read that its own quorum has to agree on.'),
    database: z
      .strictObject({
        primary: z.string().describe('Address of the PostgreSQL that takes writes.'),
        replicas: z.array(z.string()).describe('Names of those that follow it.'),
        lag_seconds: z.number().nullable().describe('Of the one that is furthest behind; null when none follows.'),
      })
      .describe('PostgreSQL, as it describes itself.'),
    version: z.string().describe('Of the platform.'),
    conditions: z
      .array(
        z.strictObject({
          type: z.enum(['WritesJudged']).describe('What the condition speaks of.'),
          status: z.enum(['True', 'False']).describe('Whether it holds.'),
          reason: z.enum(['WebhookServed', 'NoWebhook']).describe('One word for programs that says why.'),
          message: z.string().describe('For people.'),
        }),
      )
      .describe('WritesJudged: what people write with kubectl is judged before it is stored.'),
  })
  .meta({ id: 'ControlPlane' })

export const getControlPlane = platform.get('get_control_plane', '/control-plane', {
  summary: "Read how the platform's own control plane is",
  answers: { 200: ControlPlane },
})
const NodeIds = z.array(z.string().min(1).max(253)).min(1).max(5).describe('Nodes that come, or go.')
const NOT_OURS =
  'Answers 501 with the reason wherever Kubernetes and PostgreSQL are administered by others or are on one machine, ' +
  'which is everywhere now: their own tools make them larger and smaller.'
export const expandControlPlane = platform.post('expand_control_plane', '/control-plane/expand', {
  summary: 'Make the control plane larger',
  description: NOT_OURS,
  starts: ['control_plane.expand'],
  body: z.strictObject({ node_ids: NodeIds }),
  example: { node_ids: [EXAMPLE.id] },
  refuses: [400, 409, 501, 503],
})
export const shrinkControlPlane = platform.post('shrink_control_plane', '/control-plane/shrink', {
  summary: 'Make the control plane smaller',
  description: NOT_OURS,
  starts: ['control_plane.shrink'],
  isDestructive: true,
  body: z.strictObject({ node_ids: NodeIds, reason: z.string().trim().min(1).max(1_000) }),
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
