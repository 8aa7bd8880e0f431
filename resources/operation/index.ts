/** Operation: the durable record of one asynchronous change. The reconciler of the target writes its status; it
 *  outlives the target. */
import { z } from 'zod'
import type { IdleFacts } from '../../domain/idle-rules.ts'
import {
  isDeletion,
  isFinal,
  OPERATION_KINDS,
  OPERATION_STATUSES,
  type OperationKind,
  stepsOf,
} from '../../domain/operations.ts'
import { resource, route } from '../kit/define.ts'
import { nodeNamespace } from '../instance/index.ts'
import { SYSTEM_NAMESPACE } from '../kit/labels.ts'
import {
  Cursor,
  DateTime,
  Id,
  Limit,
  ObservedGeneration,
  OperationProgress,
  type OperationStanza,
  pageOf,
  type Stored,
} from '../kit/shapes.ts'

const StoredEvent = z.strictObject({
  at: z.string().max(64).describe('When it happened.'),
  kind: z.string().max(63).describe('What happened, for programs.'),
  message: z.string().max(1024).describe('What happened, for people.'),
  data: z.looseObject({}).optional().describe('More of it, for programs.'),
})

/** Which id field of the public shape names the target. */
export const OPERATION_TARGETS = [
  'server',
  'storage',
  'backup',
  'template',
  'router',
  'floating_ip',
  'node',
  'load_balancer',
  'database',
  'edge',
  'snapshot',
  'kubernetes_cluster',
  'node_pool',
  'kubernetes_host',
  'network',
  'public_pool',
  'zone',
  'object_storage',
  'control_plane',
] as const

export const Operation = resource({
  kind: 'Operation',
  plural: 'operations',
  shortNames: ['op'],
  scope: 'Namespaced',
  customers: 'read',
  description:
    'The record of one asynchronous change: who asked for what, how far it is, what happened, how it ended. Made ' +
    'and written by the platform; kept for an hour after its end, and for good behind the API.',
  spec: z
    .strictObject({
      kind: z.enum(OPERATION_KINDS).describe('What is done.'),
      target: z
        .strictObject({
          type: z.enum(OPERATION_TARGETS).describe('Kind of the resource, as the API calls it.'),
          id: z.string().max(253).describe('Name of the resource.'),
        })
        .describe('What it is done to. The operation outlives it.'),
      carrier: z
        .strictObject({
          type: z.enum(OPERATION_TARGETS).describe('Kind of the resource, as the API calls it.'),
          id: z.string().max(253).describe('Name of the resource.'),
        })
        .optional()
        .describe('What it is named after, where that is not its target: the storage of a backup.'),
      actor: z.string().max(512).describe('Who asked for it: user:<id>, token:<name>, operator or system:<component>.'),
      requestId: z.string().max(128).describe('The request that asked, as in its answer and in the audit log.'),
      createdAt: z.string().max(64).describe('When it was asked for.'),
      deadlineAt: z.string().max(64).describe('When it has failed unless it is done.'),
      stepCount: z.int().min(0).max(100).describe('How many steps it has.'),
    })
    .describe('What was asked for; never changes.'),
  status: z
    .strictObject({
      status: z.enum(OPERATION_STATUSES).describe('Whether it is under way, or how it ended.'),
      step: z.string().max(63).describe('The first of its steps that is not done.'),
      stepIndex: z.int().min(0).max(100).describe('How many steps are done.'),
      error: z.string().max(4096).describe('Why it failed; empty otherwise.'),
      startedAt: z.string().max(64).optional().describe('When it began.'),
      finishedAt: z.string().max(64).optional().describe('When it ended.'),
      events: z.array(StoredEvent).max(100).optional().describe('What happened, oldest first; the newest hundred.'),
      observedGeneration: ObservedGeneration,
    })
    .describe('How far it is.'),
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
  rules: [{ rule: 'self.spec == oldSelf.spec', message: 'what was asked for cannot be changed' }],
})
export type OperationSpec = z.infer<typeof Operation.spec>
export type OperationState = z.infer<typeof Operation.status>

/** Where the operations of a target are that is in no namespace itself. */
export const operationNamespace = ({ type, id }: OperationSpec['target']): string =>
  type === 'node' ? nodeNamespace(id) : SYSTEM_NAMESPACE

export const OperationEventView = z.strictObject({
  at: DateTime,
  kind: z.string(),
  message: z.string(),
  data: z.looseObject({}),
})

export const MIGRATION_STATES = ['reserved', 'detached', 'preparing', 'sending', 'switched', 'aborting'] as const
export const MIGRATION_PHASES = ['', 'preparing', 'transferring', 'completed', 'failed'] as const
export type MigrationState = (typeof MIGRATION_STATES)[number]

/** How far the live migration of a server is. */
export const MigrationProgressView = z
  .strictObject({
    state: z.enum(MIGRATION_STATES),
    source_node_id: z.string(),
    target_node_id: z.string(),
    phase: z.enum(MIGRATION_PHASES).describe('How far the nodes report the current attempt; empty before.'),
    attempt: z.int().min(1).describe('Which send under the policy.'),
    iteration: z.int().min(0).describe('Passes over the memory in this attempt.'),
    transferred_bytes: z.int().min(0),
    total_bytes: z.int().min(0).describe('0 when the hypervisor does not tell.'),
    dirty_bytes_per_second: z.int().min(0),
    downtime_milliseconds: z.int().min(0).describe('How long the guest stood still at handover, once completed.'),
    detail: z.string(),
    reported_at: DateTime.nullable().describe("By the reporting node's clock."),
  })
  .meta({ id: 'MigrationProgress' })
export type MigrationProgressView = z.infer<typeof MigrationProgressView>

/** The public Operation. Ids of other kinds of target are absent unless the operation is theirs. */
export const OperationView = z
  .strictObject({
    id: z.string(),
    kind: z.enum(OPERATION_KINDS),
    server_id: z.string().nullable(),
    storage_id: z.string().nullable(),
    backup_id: z.string().nullable(),
    template_id: z.string().nullable(),
    router_id: z.string().nullable(),
    floating_ip_id: z.string().nullable(),
    node_id: z.string().optional(),
    load_balancer_id: z.string().nullable().optional(),
    database_id: z.string().nullable().optional(),
    edge_id: z.string().nullable().optional(),
    snapshot_id: z.string().nullable().optional(),
    kubernetes_cluster_id: z.string().nullable().optional(),
    node_pool_id: z.string().nullable().optional(),
    kubernetes_host_id: z.string().optional(),
    status: z.enum(OPERATION_STATUSES),
    step: z.string(),
    step_index: z.int(),
    step_count: z.int(),
    error: z.string(),
    created_at: DateTime,
    deadline_at: DateTime,
    started_at: DateTime.nullable(),
    finished_at: DateTime.nullable(),
    actor: z.string(),
    progress: MigrationProgressView.optional(),
    events: z.array(OperationEventView).optional(),
  })
  .meta({ id: 'Operation' })
export type OperationView = z.infer<typeof OperationView>
export const OperationEnvelope = z.strictObject({ operation: OperationView }).meta({ id: 'OperationEnvelope' })

const ALWAYS_NAMED = ['server', 'storage', 'backup', 'template', 'router', 'floating_ip'] as const
const NAMED_WHEN_TARGET = [
  'node',
  'load_balancer',
  'database',
  'edge',
  'snapshot',
  'kubernetes_cluster',
  'node_pool',
  'kubernetes_host',
] as const

/** Ids of targets for which the public shape has no field: told with the first event. */
export const unnamedTarget = ({ type, id }: OperationSpec['target']): Readonly<Record<string, string>> | undefined =>
  [...ALWAYS_NAMED, ...NAMED_WHEN_TARGET].some((named) => named === type) ? undefined : { [`${type}_id`]: id }

const isTargetType = (type: string): type is OperationSpec['target']['type'] =>
  OPERATION_TARGETS.some((known) => known === type)

/** The first word of a kind: what its operations are named after. */
export function carrierTypeOf(kind: OperationKind): OperationSpec['target']['type'] {
  const [type = ''] = kind.split('.')
  if (!isTargetType(type)) throw new Error(`operations ${kind} are named after nothing that has operations`)
  return type
}

/** Says of an operation whose target is another what it is named after. */
export const carriedBy = (kind: OperationKind, id: string): Readonly<Record<string, string>> => ({
  [`${carrierTypeOf(kind)}_id`]: id,
})

/** Says of the creation of a storage which snapshot it clones, where it does. */
export const clonedFrom = (source: { readonly kind: string; readonly id: string } | undefined) =>
  source?.kind === 'snapshot' ? { arguments: { snapshot_id: source.id } } : {}

/** What the operation is named after besides its target, where it says so: a clone after its snapshot. */
export function carrierOf(stanza: Pick<OperationStanza, 'kind' | 'arguments'> | undefined): OperationSpec['carrier'] {
  if (stanza === undefined) return undefined
  const type = stanza.kind === 'storage.create' ? 'snapshot' : carrierTypeOf(stanza.kind)
  const id = stanza.arguments?.[`${type}_id`]
  return id === undefined ? undefined : { type, id }
}

/** From progress, as it stands on the target (`active_operation`) or in the Operation object; without events. It names
 *  its target, and what it is named after. */
export function toOperationView(
  progress: OperationProgress,
  target: OperationSpec['target'],
  carrier?: OperationSpec['carrier'],
): OperationView {
  const idOf = (type: OperationSpec['target']['type']): string | null =>
    [target, carrier].find((named) => named?.type === type)?.id ?? null
  return {
    id: progress.id,
    kind: progress.kind,
    server_id: idOf('server'),
    storage_id: idOf('storage'),
    backup_id: idOf('backup'),
    template_id: idOf('template'),
    router_id: idOf('router'),
    floating_ip_id: idOf('floating_ip'),
    ...Object.fromEntries(
      [target, carrier].flatMap((named) =>
        NAMED_WHEN_TARGET.some((type) => type === named?.type) ? [[`${named?.type}_id`, named?.id]] : [],
      ),
    ),
    status: progress.status,
    step: progress.step,
    step_index: progress.stepIndex,
    step_count: progress.stepCount,
    error: progress.error,
    created_at: progress.createdAt,
    deadline_at: progress.deadlineAt,
    started_at: progress.startedAt ?? null,
    finished_at: progress.finishedAt ?? null,
    actor: progress.actor,
  }
}

/** What has operations. */
export interface Operable {
  readonly spec: { readonly operation?: OperationStanza | undefined }
  readonly status?: { readonly operation?: OperationProgress | undefined } | undefined
}

/** It is being deleted: its object says so, or the kind or the arguments of its newest operation do. */
export const isBeingDeleted = ({
  metadata,
  spec,
}: Operable & { readonly metadata: { readonly deletionTimestamp?: string | undefined } }): boolean =>
  metadata.deletionTimestamp !== undefined ||
  (spec.operation !== undefined && isDeletion(spec.operation.kind)) ||
  spec.operation?.arguments?.['action'] === 'delete'

/** The change under way on whatever has operations: the one of the stanza until the controller has reported its end. */
export function activeOperationOf({ spec, status }: Operable): OperationProgress | undefined {
  const { operation } = spec
  if (operation === undefined) return undefined
  if (status?.operation?.id === operation.id) return isFinal(status.operation.status) ? undefined : status.operation
  const [step = '', ...later] = stepsOf(operation.kind)
  return {
    id: operation.id,
    kind: operation.kind,
    status: 'pending',
    step,
    stepIndex: 0,
    stepCount: later.length + 1,
    error: '',
    actor: operation.actor,
    createdAt: operation.requestedAt,
    deadlineAt: operation.deadlineAt,
  }
}

/** Of kinds whose operations say in their arguments what they do. */
export const idleFactsOf = (stored: Stored<Operable['spec'], Operable['status']>): IdleFacts => {
  const operation = activeOperationOf(stored)
  return {
    id: stored.name,
    isDeleting: stored.isDeleting,
    activeOperation: operation && { id: operation.id, action: stored.spec.operation?.arguments?.['action'] },
  }
}

const AREA = 'Operations'
export const WAIT_SECONDS_MAXIMUM = 30
const IDS_MAXIMUM = 50

export const listOperations = route({
  id: 'list_operations',
  method: 'GET',
  path: '/v1/operations',
  area: AREA,
  summary: 'List operations',
  description: 'Newest first, without their events.',
  permission: 'read',
  clusterScopes: ['storages'],
  query: z.strictObject({
    cursor: Cursor.optional(),
    limit: Limit,
    id: z.array(Id).max(IDS_MAXIMUM).optional().describe('Only these; may be given more than once.'),
    status: z.enum(OPERATION_STATUSES).optional(),
    resource: z
      .string()
      .max(300)
      .regex(/^[a-z_]+:./, 'must be a type and an id, as in server:<id>')
      .optional()
      .describe('Only those of one resource: its type and id, as in server:<id>.'),
  }),
  answers: { 200: pageOf(OperationView) },
  refuses: [400],
  budget: 'operation_reads',
})

export const getOperation = route({
  id: 'get_operation',
  method: 'GET',
  path: '/v1/operations/{id}',
  area: AREA,
  summary: 'Read an operation with its events',
  permission: 'read',
  clusterScopes: ['storages'],
  params: z.strictObject({ id: Id }),
  query: z.strictObject({
    wait: z.coerce
      .number()
      .int()
      .min(1)
      .max(WAIT_SECONDS_MAXIMUM)
      .optional()
      .describe('Seconds to wait for a change before answering; answers at once when the operation has ended.'),
  }),
  answers: { 200: OperationEnvelope },
  refuses: [400, 404],
  budget: 'operation_reads',
})

export const cancelOperation = route({
  id: 'cancel_operation',
  method: 'POST',
  path: '/v1/operations/{id}/cancel',
  area: AREA,
  summary: 'Cancel an operation',
  permission: 'operate',
  audit: 'operation.cancel',
  description:
    'Only long copies and moves can be cancelled, and only before they have come to their point of no return.',
  params: z.strictObject({ id: Id }),
  answers: { 202: OperationEnvelope },
  refuses: [404, 409],
})

export const OPERATION_ROUTES = [listOperations, getOperation, cancelOperation] as const
