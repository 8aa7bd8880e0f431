/** Operation: the durable record of one asynchronous change. The reconciler of the target writes its status; it outlives the target. */
import { z } from 'zod'
import { OPERATION_KINDS, OPERATION_STATUSES } from '../domain/operations.ts'
import { resource, route } from './define.ts'
import { Id, OperationProgress } from './shapes.ts'

const StoredEvent = z.strictObject({ at: z.string().max(64), kind: z.string().max(63), message: z.string().max(1024), data: z.looseObject({}).optional() })

/** Which id field of the public shape names the target. */
export const OPERATION_TARGETS = ['server', 'storage', 'backup', 'template', 'router', 'floating_ip', 'node', 'load_balancer', 'database', 'edge',
  'snapshot', 'kubernetes_cluster', 'node_pool', 'kubernetes_host', 'network', 'public_pool', 'zone', 'object_storage', 'control_plane'] as const

export const Operation = resource({
  kind: 'Operation', plural: 'operations', shortNames: ['op'], scope: 'Namespaced',
  description: 'The durable record of one asynchronous change: who asked for it, how far it is, and what happened. Written by the platform.',
  spec: z.strictObject({
    kind: z.enum(OPERATION_KINDS),
    target: z.strictObject({ type: z.enum(OPERATION_TARGETS), id: z.string().max(253) }),
    actor: z.string().max(512),
    requestId: z.string().max(128),
    createdAt: z.string().max(64),
    deadlineAt: z.string().max(64),
    stepCount: z.int().min(0).max(100),
  }),
  status: z.strictObject({
    status: z.enum(OPERATION_STATUSES),
    step: z.string().max(63),
    stepIndex: z.int().min(0).max(100),
    error: z.string().max(4096),
    startedAt: z.string().max(64).optional(),
    finishedAt: z.string().max(64).optional(),
    events: z.array(StoredEvent).max(100).optional(),
    observedGeneration: z.int().optional(),
  }),
  columns: [
    { name: 'Kind', type: 'string', jsonPath: '.spec.kind' },
    { name: 'Target', type: 'string', jsonPath: '.spec.target.id' },
    { name: 'Status', type: 'string', jsonPath: '.status.status' },
    { name: 'Step', type: 'string', jsonPath: '.status.step' },
    { name: 'Actor', type: 'string', jsonPath: '.spec.actor' },
    { name: 'Error', type: 'string', jsonPath: '.status.error', priority: 1 },
    { name: 'Age', type: 'date', jsonPath: '.metadata.creationTimestamp' },
  ],
  selectableFields: ['.spec.kind', '.spec.target.id', '.status.status'],
})
export type OperationSpec = z.infer<typeof Operation.spec>
export type OperationState = z.infer<typeof Operation.status>

export const OperationEventView = z.strictObject({ at: z.string(), kind: z.string(), message: z.string(), data: z.looseObject({}) })

/** The public Operation. Ids of other kinds of target are absent unless the operation is theirs. */
export const OperationView = z.strictObject({
  id: z.string(), kind: z.enum(OPERATION_KINDS),
  server_id: z.string().nullable(), storage_id: z.string().nullable(), backup_id: z.string().nullable(),
  template_id: z.string().nullable(), router_id: z.string().nullable(), floating_ip_id: z.string().nullable(),
  node_id: z.string().optional(), load_balancer_id: z.string().nullable().optional(), database_id: z.string().nullable().optional(),
  edge_id: z.string().nullable().optional(), snapshot_id: z.string().nullable().optional(),
  kubernetes_cluster_id: z.string().nullable().optional(), node_pool_id: z.string().nullable().optional(), kubernetes_host_id: z.string().optional(),
  status: z.enum(OPERATION_STATUSES), step: z.string(), step_index: z.int(), step_count: z.int(), error: z.string(),
  created_at: z.string(), deadline_at: z.string(), started_at: z.string().nullable(), finished_at: z.string().nullable(),
  actor: z.string(), progress: z.looseObject({}).optional(), events: z.array(OperationEventView).optional(),
}).meta({ id: 'Operation' })
export type OperationView = z.infer<typeof OperationView>
export const OperationEnvelope = z.strictObject({ operation: OperationView }).meta({ id: 'OperationEnvelope' })

const ALWAYS_NAMED = ['server', 'storage', 'backup', 'template', 'router', 'floating_ip'] as const
const NAMED_WHEN_TARGET = ['node', 'load_balancer', 'database', 'edge', 'snapshot', 'kubernetes_cluster', 'node_pool', 'kubernetes_host'] as const

/** From progress, as it stands on the target (`active_operation`) or in the Operation object; without events. */
export function toOperationView(progress: OperationProgress, target: OperationSpec['target']): OperationView {
  const ids: Record<string, string | null> = {}
  for (const type of ALWAYS_NAMED) ids[`${type}_id`] = target.type === type ? target.id : null
  for (const type of NAMED_WHEN_TARGET) if (target.type === type) ids[`${type}_id`] = target.id
  return {
    id: progress.id, kind: progress.kind,
    ...(ids as Pick<OperationView, 'server_id' | 'storage_id' | 'backup_id' | 'template_id' | 'router_id' | 'floating_ip_id'>), // filled by the first loop
    status: progress.status, step: progress.step, step_index: progress.stepIndex, step_count: progress.stepCount, error: progress.error,
    created_at: progress.createdAt, deadline_at: progress.deadlineAt, started_at: progress.startedAt ?? null, finished_at: progress.finishedAt ?? null,
    actor: progress.actor,
  }
}

export const getOperation = route({
  id: 'get_operation', method: 'GET', path: '/v1/operations/{id}', area: 'Operations', summary: 'Read an operation with its events',
  permission: 'read', params: z.strictObject({ id: Id }), answers: { 200: OperationEnvelope }, refuses: [404], budget: 'operation_reads',
})
