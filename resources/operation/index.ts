/** Operation: the durable record of one asynchronous change. The reconciler of the target writes its status; it
 *  outlives the target. */
import { z } from 'zod'
import type { IdleFacts } from '../../domain/idle-rules.ts'
import {
  isDeletion,
  isFinal,
  OPERATION_EVENTS_MAXIMUM,
  OPERATION_KINDS,
  OPERATION_STATUSES,
  type OperationKind,
  stepsOf,
} from '../../domain/operations.ts'
import { isUuid } from '../../domain/uuid.ts'
import { resource, route } from '../kit/define.ts'
import { Period, repeated } from '../kit/filters.ts'
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
  Actor,
  RequestId,
} from '../kit/shapes.ts'
import { ObjectName } from '../kit/fields.ts'
import { AGE } from '../kit/columns.ts'

const StoredEvent = z.strictObject({
  at: z.string().max(64).describe('Time of the event.'),
  kind: z.string().max(63).describe('Machine-readable kind of the event.'),
  message: z.string().max(1024).describe('Human-readable description of the event.'),
  data: z.looseObject({}).optional().describe('Machine-readable details.'),
})

/** Targets whose id has a field in the public shape: always, and where it is the target. */
const ALWAYS_NAMED: readonly OperationTarget[] = ['server', 'storage', 'backup', 'template', 'router', 'floating_ip']
const NAMED_WHEN_TARGET: readonly OperationTarget[] = [
  'node',
  'load_balancer',
  'database',
  'edge',
  'snapshot',
  'kubernetes_cluster',
  'node_pool',
  'kubernetes_host',
]
type FirstWord<Kind> = Kind extends `${infer Word}.${string}` ? Word : never
/** Types of targets: what operations are named after, and zones, whose policy is an operation of storages. */
type OperationTarget = FirstWord<OperationKind> | 'zone'
export const OPERATION_TARGETS = [
  ...new Set([...OPERATION_KINDS.map((kind) => kind.split('.')[0]), 'zone']),
] as readonly string[] as readonly OperationTarget[] // the first words

export const Operation = resource({
  kind: 'Operation',
  plural: 'operations',
  shortNames: ['op'],
  scope: 'Namespaced',
  customers: 'read',
  description:
    'The record of one asynchronous change: requester, request, progress, events and outcome. Created and written ' +
    'by the platform. Kept for an hour after its end, and permanently in the API.',
  spec: z
    .strictObject({
      kind: z.enum(OPERATION_KINDS).describe('Kind of the operation.'),
      target: z
        .strictObject({
          type: z.enum(OPERATION_TARGETS).describe('Kind of the resource, as the API calls it.'),
          id: ObjectName.describe('Name of the resource.'),
          name: z
            .string()
            .max(255)
            .optional()
            .describe('Hostname, name or title of the resource when the operation was requested.'),
        })
        .describe('Target. The operation outlives it.'),
      carrier: z
        .strictObject({
          type: z.enum(OPERATION_TARGETS).describe('Kind of the resource, as the API calls it.'),
          id: ObjectName.describe('Name of the resource.'),
        })
        .optional()
        .describe(
          'Object that the operation is named after when that is not its target, such as the storage of a backup.',
        ),
      actor: Actor.describe('Who requested it: user:<id>, token:<name>, operator or system:<component>.'),
      requestId: RequestId.describe('Id of the request, as in its answer and in the audit log.'),
      createdAt: z.string().max(64).describe('Time of the request.'),
      deadlineAt: z.string().max(64).describe('Time after which it fails if it is not complete.'),
      stepCount: z.int().min(0).max(100).describe('Number of steps.'),
    })
    .describe('Request; never changes.'),
  status: z
    .strictObject({
      status: z.enum(OPERATION_STATUSES).describe('Status of the operation.'),
      step: z.string().max(63).describe('First step that is not complete.'),
      stepIndex: z.int().min(0).max(100).describe('Number of completed steps.'),
      error: z.string().max(4096).describe('Reason for the failure; empty otherwise.'),
      startedAt: z.string().max(64).optional().describe('Time when it started.'),
      finishedAt: z.string().max(64).optional().describe('Time when it ended.'),
      events: z
        .array(StoredEvent)
        .max(OPERATION_EVENTS_MAXIMUM)
        .optional()
        .describe('Events, oldest first; the newest hundred.'),
      observedGeneration: ObservedGeneration,
    })
    .describe('Progress of the operation.'),
  columns: [
    { name: 'Kind', type: 'string', jsonPath: '.spec.kind' },
    { name: 'Target', type: 'string', jsonPath: '.spec.target.id' },
    { name: 'Status', type: 'string', jsonPath: '.status.status' },
    { name: 'Step', type: 'string', jsonPath: '.status.step' },
    { name: 'Actor', type: 'string', jsonPath: '.spec.actor' },
    { name: 'Error', type: 'string', jsonPath: '.status.error', priority: 1 },
    AGE,
  ],
  selectableFields: ['.spec.kind', '.spec.target.id', '.status.status'],
  rules: [{ rule: 'self.spec == oldSelf.spec', message: 'what was asked for cannot be changed' }],
})
export type OperationSpec = z.infer<typeof Operation.spec>
export type OperationState = z.infer<typeof Operation.status>

/** Namespace of operations whose target has no namespace. */
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

/** Progress of the live migration of a server. */
export const MigrationProgressView = z
  .strictObject({
    state: z.enum(MIGRATION_STATES),
    source_node_id: z.string(),
    target_node_id: z.string(),
    phase: z.enum(MIGRATION_PHASES).describe('Phase of the current attempt that the nodes report; empty before.'),
    attempt: z.int().min(1).describe('Number of the attempt under the policy.'),
    iteration: z.int().min(0).describe('Passes over the memory in this attempt.'),
    transferred_bytes: z.int().min(0),
    total_bytes: z.int().min(0).describe('0 when the hypervisor does not report it.'),
    dirty_bytes_per_second: z.int().min(0),
    downtime_milliseconds: z.int().min(0).describe('Pause of the guest at handover, once completed.'),
    detail: z.string(),
    reported_at: DateTime.nullable().describe("Time of the report, by the reporting node's clock."),
  })
  .meta({ id: 'MigrationProgress' })
export type MigrationProgressView = z.infer<typeof MigrationProgressView>

const targetId = (title: string) =>
  z.string().nullable().describe(`${title} that the operation belongs to; null otherwise.`)

/** The public Operation. Ids of other target kinds are absent unless the operation targets them. */
export const OperationView = z
  .strictObject({
    id: z.string(),
    kind: z.enum(OPERATION_KINDS),
    resource: z
      .strictObject({
        type: z.enum(OPERATION_TARGETS).describe('Type, as in the filter of the list of operations.'),
        id: z.string(),
        name: z
          .string()
          .nullable()
          .describe('Hostname, name, title or address when the operation was requested; null without any.'),
      })
      .describe('The resource that changes. The operation keeps its name when it is deleted.'),
    server_id: targetId('Server'),
    storage_id: targetId('Storage'),
    backup_id: targetId('Backup'),
    template_id: targetId('Template'),
    router_id: targetId('Router'),
    floating_ip_id: targetId('Floating IP'),
    node_id: z.string().optional().describe('Host that the operation belongs to.'),
    load_balancer_id: targetId('Load balancer').optional(),
    database_id: targetId('Database').optional(),
    edge_id: targetId('Edge').optional(),
    snapshot_id: targetId('Snapshot').optional(),
    kubernetes_cluster_id: targetId('Kubernetes cluster').optional(),
    node_pool_id: targetId('Node pool').optional(),
    kubernetes_host_id: z.string().optional().describe('Kubernetes host that the operation belongs to.'),
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
    actor_name: z
      .string()
      .nullable()
      .optional()
      .describe(
        'Name of the token, or email of the person, which never changes, also of one who has left; null for the ' +
          'platform. Absent where a resource or the answer to a change shows the operation.',
      ),
    progress: MigrationProgressView.optional(),
    events: z.array(OperationEventView).optional(),
  })
  .meta({ id: 'Operation' })
export type OperationView = z.infer<typeof OperationView>
export const OperationEnvelope = z.strictObject({ operation: OperationView }).meta({ id: 'OperationEnvelope' })

/** Ids of targets without a field in the public shape; the first event contains them. */
export const unnamedTarget = ({ type, id }: OperationSpec['target']): Readonly<Record<string, string>> | undefined =>
  [...ALWAYS_NAMED, ...NAMED_WHEN_TARGET].some((named) => named === type) ? undefined : { [`${type}_id`]: id }

const isTargetType = (type: string): type is OperationSpec['target']['type'] =>
  OPERATION_TARGETS.some((known) => known === type)

/** The first word of a kind: the type that its operations are named after. */
export function carrierTypeOf(kind: OperationKind): OperationSpec['target']['type'] {
  const [type = ''] = kind.split('.')
  if (!isTargetType(type)) throw new Error(`operations ${kind} are named after nothing that has operations`)
  return type
}

/** Records on an operation which object it is named after, when that is not its target. */
export const carriedBy = (kind: OperationKind, id: string): Readonly<Record<string, string>> => ({
  [`${carrierTypeOf(kind)}_id`]: id,
})

/** Records on the creation of a storage which snapshot it clones, if any. */
export const clonedFrom = (source: { readonly kind: string; readonly id: string } | undefined) =>
  source?.kind === 'snapshot' ? { arguments: { snapshot_id: source.id } } : {}

/** The additional object that an operation records as its name, such as the snapshot of a clone. */
export function carrierOf(stanza: Pick<OperationStanza, 'kind' | 'arguments'> | undefined): OperationSpec['carrier'] {
  if (stanza === undefined) return undefined
  const type = stanza.kind === 'storage.create' ? 'snapshot' : carrierTypeOf(stanza.kind)
  const id = stanza.arguments?.[`${type}_id`]
  return id === undefined ? undefined : { type, id }
}

/** A target with the name that people gave it; undefined without one. */
export type NamedTarget = Pick<OperationSpec['target'], 'type' | 'id'> & { readonly name: string | undefined }

/** Of a record, which may be older than the names. */
export const recordedTarget = ({ type, id, name }: OperationSpec['target']): NamedTarget => ({ type, id, name })

const NAME_LENGTH_MAXIMUM = 255

/** What people call an object: its hostname, name, title or address, or the name of the object unless that is only an
 *  id. */
export function namedTarget<Type extends OperationSpec['target']['type']>(
  type: Type,
  { name: id, spec }: { readonly name: string; readonly spec: unknown },
): NamedTarget & { readonly type: Type } {
  // each kind has some of them
  const { hostname, name, title, address } = spec as Readonly<Record<string, unknown>>
  const ownName = [hostname, name, title, address].find((text) => typeof text === 'string' && text !== '')
  const known = typeof ownName === 'string' ? ownName.slice(0, NAME_LENGTH_MAXIMUM) : isUuid(id) ? undefined : id
  return { type, id, name: known }
}

/** From progress, as in the target (`active_operation`) or in the Operation object; without events. It names its
 *  target, and the object it is named after. */
export function toOperationView(
  progress: OperationProgress,
  target: NamedTarget,
  carrier?: OperationSpec['carrier'],
): OperationView {
  const idOf = (type: OperationSpec['target']['type']): string | null =>
    [target, carrier].find((named) => named?.type === type)?.id ?? null
  return {
    id: progress.id,
    kind: progress.kind,
    resource: { type: target.type, id: target.id, name: target.name ?? null },
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

/** Objects with operations. */
export interface Operable {
  readonly spec: { readonly operation?: OperationStanza | undefined }
  readonly status?: { readonly operation?: OperationProgress | undefined } | undefined
}

/** Whether it is being deleted: by its object, or by the kind or the arguments of its newest operation. */
export const isBeingDeleted = ({
  metadata,
  spec,
}: Operable & { readonly metadata: { readonly deletionTimestamp?: string | undefined } }): boolean =>
  metadata.deletionTimestamp !== undefined ||
  (spec.operation !== undefined && isDeletion(spec.operation.kind)) ||
  spec.operation?.arguments?.['action'] === 'delete'

/** The change in progress on an object with operations: the one in the spec until the controller has reported its
 *  end. */
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

/** Kinds whose operations state their action in the arguments. */
export const idleFactsOf = (stored: Stored<Operable['spec'], Operable['status']>): IdleFacts => {
  const operation = activeOperationOf(stored)
  return {
    id: stored.name,
    isDeleting: stored.isDeleting,
    activeOperation: operation && { id: operation.id, action: stored.spec.operation?.arguments?.['action'] },
  }
}

export const WAIT_SECONDS_MAXIMUM = 30
/** Filters by what an operation does, to which resource, and by its outcome. */
export const OperationFilters = {
  kind: repeated(z.enum(OPERATION_KINDS)),
  status: repeated(z.enum(OPERATION_STATUSES)),
  resource: z
    .string()
    .max(300)
    .regex(/^[a-z_]+:./, 'must be a type and an id, as in server:<id>')
    .optional()
    .describe('Returns only operations of one resource, given as type and id, as in server:<id>.'),
  ...Period,
} as const

export const listOperations = route({
  id: 'list_operations',
  method: 'GET',
  path: '/v1/operations',
  summary: 'List operations',
  description: 'Newest first, without their events.',
  permission: 'read',
  clusterScopes: ['storages'],
  query: z.strictObject({
    cursor: Cursor.optional(),
    limit: Limit,
    id: repeated(Id),
    ...OperationFilters,
  }),
  answers: { 200: pageOf(OperationView) },
  refuses: [400],
  budget: 'operation_reads',
})

export const getOperation = route({
  id: 'get_operation',
  method: 'GET',
  path: '/v1/operations/{id}',
  summary: 'Get an operation with its events',
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
      .describe('Seconds to wait for a change before answering; an ended operation is answered immediately.'),
  }),
  answers: { 200: OperationEnvelope },
  refuses: [400, 404],
  budget: 'operation_reads',
})

export const cancelOperation = route({
  id: 'cancel_operation',
  method: 'POST',
  path: '/v1/operations/{id}/cancel',
  summary: 'Cancel an operation',
  permission: 'operate',
  audit: 'operation.cancel',
  description: 'Only long copies and moves can be cancelled, and only before their point of no return.',
  params: z.strictObject({ id: Id }),
  answers: { 202: OperationEnvelope },
  refuses: [404, 409],
})

export const OPERATION_ROUTES = [listOperations, getOperation, cancelOperation] as const
