/** The plan of object storage: pure, synchronous, total. */
import { isDeepStrictEqual } from 'node:util'
import { meteredAfter } from '../../../domain/billing/metered-bytes.ts'
import { isCancelled, type KindOf } from '../../../domain/operations.ts'
import type { ObjectStorageRow, TenantFacts } from '../../../db/object-storage/index.ts'
import type { KubernetesRequest } from '../../../db/request/index.ts'
import { measurementOf, type TenantState, type Upstream } from '../../../integrations/object-storage/control.ts'
import type { KubeObject } from '../../../kit/kube/object.ts'
import type { ObjectStorageSpec, ObjectStorageStatus } from '../../../resources/object-storage/index.ts'
import type { AuditEffects } from '../../kit/audit.ts'
import type { ActionWith } from '../../kit/effects.ts'
import { healthConditions } from '../../kit/health.ts'
import { operationActions, type OperationDecision, waitActions } from '../../kit/operation/decision.ts'
import { auditRequests } from '../../kit/operation/direct-edit.ts'
import { type During, planOperations } from '../../kit/operation/plan.ts'
import { activeOperation } from '../../kit/operation/stanza.ts'
import { refusalOf } from '../../kit/refusal.ts'

export interface Observed {
  /** Undefined when the namespace is no account's. */
  readonly accountId: string | undefined
  readonly isZone: boolean
  readonly row: ObjectStorageRow | undefined
  /** Why the zone has no object storage. */
  readonly obstacle?: string
  /** The store does not answer. */
  readonly isAway?: boolean
  /** Where clients of the zone connect. */
  readonly endpoint?: string
  /** From the store. */
  readonly tenant: TenantState | undefined
  /** The desired state of the tenant, once there is a row. */
  readonly wanted?: (Omit<TenantFacts, 'toldAt'> & Pick<TenantState, 'secretFingerprint'>) | undefined
  /** After a move: the tenant in the store that clients connect to, and the upstream to which that store must
   *  forward. */
  readonly entrance?: { readonly tenant: TenantState | undefined; readonly upstream: Upstream | undefined }
  /** Requests by people to the Kubernetes API since the last reconcile. */
  readonly requests: readonly KubernetesRequest[]
}

/** The effects by name, each with its input. */
export interface ObjectStorageEffects extends AuditEffects {
  /** Creates the row. */
  readonly open: { readonly accountId: string; readonly id: string; readonly zone: string }
  /** Configures the store with what the row says. */
  readonly bringUp: { readonly row: ObjectStorageRow }
  readonly record: { readonly row: ObjectStorageRow; readonly tenant: TenantState }
  /** Start the move to the gateway, continue it, and end it one way or the other. */
  readonly prepareMove: { readonly row: ObjectStorageRow; readonly operationId: string }
  readonly goOnMoving: { readonly row: ObjectStorageRow }
  readonly switchOver: { readonly row: ObjectStorageRow }
  readonly abandonMove: { readonly row: ObjectStorageRow }
  /** Deletes tenant and row, if the tenant has no buckets. */
  readonly remove: { readonly row: ObjectStorageRow }
}
type ObjectStorageAction = ActionWith<ObjectStorageEffects>
type ObjectStorageObject = KubeObject<ObjectStorageSpec, ObjectStorageStatus>

/** No event wakes the reconciler when objects are stored, an account is suspended, or a quota changes. */
const LOOK_SECONDS = 15

/** Condition with the reason why its objects could not be moved. */
export const MOVED = 'Moved'
/** Condition with the reason why its move does not continue, while that is retried. */
export const MOVING = 'Moving'

interface Input {
  readonly object: ObjectStorageObject
  readonly observed: Observed
}
type Decision = OperationDecision<ObjectStorageAction, KindOf<'object_storage'>>

export const plan = planOperations<ObjectStorageObject, Observed, Input, Decision, ObjectStorageAction>({
  label: 'Object storage',
  endedByDeletion: 'all',
  flows: { 'object_storage.migrate': move },
  inputOf: (object, observed) => ({ object, observed }),
  unchanged: () => ({}),
  always: ({ object, observed }) => auditRequests(object, observed.requests),
  guard: ({ object, observed }) => {
    if (object.metadata.deletionTimestamp === undefined) return undefined
    const operation = activeOperation(object)
    return [
      ...(operation === undefined
        ? []
        : [{ do: 'operation', id: operation.id, step: 'prepared', outcome: 'cancelled' } as const]),
      ...(abandoned(observed) ?? leave(observed)),
    ]
  },
  detectEdit: () => undefined,
  idle: ({ object, observed }) => ({ actions: abandoned(observed) ?? decide(object, observed) }),
  toActions: ({ object }, decision) => [
    ...(decision.actions ?? []),
    ...operationActions(object, decision),
    ...waitActions(decision),
  ],
})

/** The move no longer has an operation. */
const abandoned = ({ row, obstacle, isAway }: Observed): readonly ObjectStorageAction[] | undefined =>
  row === undefined || row.move === null || obstacle !== undefined || isAway === true
    ? undefined
    : [
        { do: 'effect', name: 'abandonMove', input: { row } },
        { do: 'wait', seconds: 0, for: 'its move to be undone' },
      ]

const STEPS = {
  live: 'copied',
  frozen: 'frozen',
  exact: 'verified',
  prune: 'verified',
  check: 'verified',
  verified: 'switched',
} as const
const FREEZE_LOOK_SECONDS = 2
/** A store that refuses is not asked again at once. */
const REFUSED_LOOK_SECONDS = 10
/** Reason of an object storage that is not ready. */
export const UNREACHABLE = 'Unreachable'
const AWAY = 'The store that it is on does not answer.'

/** The row has the progress. After the switch nothing can be undone. */
function move({ object, observed, operation }: During<Input>): Decision {
  const { row, tenant, wanted, obstacle } = observed
  const actions = decide(object, observed)
  const isToldRight = obstacle === undefined && tenant !== undefined && wanted !== undefined && isSame(tenant, wanted)
  if (row === undefined) return { actions, step: 'prepared', waitFor: 'its row' }
  if (row.backend === 'rgw') return { actions, step: 'switched', outcome: 'succeeded' }
  if (isCancelled(operation)) return { step: stepOf(row), outcome: 'cancelled', waitSeconds: 0 }
  const refusal = refusalOf(object, MOVED)
  if (refusal !== undefined) return { step: stepOf(row), outcome: 'failed', error: refusal.message, waitSeconds: 0 }
  if (row.move !== null && row.move.operationId !== operation.id)
    return { actions: [{ do: 'effect', name: 'abandonMove', input: { row } }], step: 'prepared', waitSeconds: 0 }
  if (!isToldRight) return { actions, step: stepOf(row), waitFor: 'the store that it is on', ...waiting(observed) }
  const { message } = object.status?.conditions?.find(({ type, status }) => type === MOVING && status === 'False') ?? {}
  return {
    step: stepOf(row),
    actions: [...actions.filter((action) => action.do !== 'wait'), effectOf(row, operation.id)],
    waitFor: message ?? 'its objects to be copied',
    waitSeconds: message !== undefined ? REFUSED_LOOK_SECONDS : row.move?.phase === 'frozen' ? FREEZE_LOOK_SECONDS : 0,
    ...(message === undefined ? {} : { events: [waitingEvent(message)] }),
  }
}

/** Reported once, however often it is retried. */
const waitingEvent = (message: string) => ({ kind: 'waiting', message })
const waiting = ({ isAway, obstacle }: Observed) =>
  isAway === true
    ? { events: [waitingEvent(AWAY)] }
    : obstacle === undefined
      ? {}
      : { events: [waitingEvent(`The zone has no object storage: ${obstacle}.`)] }

const stepOf = ({ move: state }: ObjectStorageRow): Decision['step'] =>
  state === null ? 'prepared' : STEPS[state.phase]

function effectOf(row: ObjectStorageRow, operationId: string): ObjectStorageAction {
  if (row.move === null) return { do: 'effect', name: 'prepareMove', input: { row, operationId } }
  return { do: 'effect', name: row.move.phase === 'verified' ? 'switchOver' : 'goOnMoving', input: { row } }
}

/** Guards in order: no account, no zone, no row, no store that serves it, configured differently, done. */
function decide(object: ObjectStorageObject, observed: Observed): readonly ObjectStorageAction[] {
  const { accountId, isZone, row, obstacle, endpoint, tenant } = observed
  const { spec } = object
  if (accountId === undefined) return stalled('NoAccount', 'The namespace belongs to no account.')
  if (!isZone) return stalled('NoZone', `There is no zone ${spec.zone}.`)
  if (row === undefined && obstacle === undefined) return [...claim(object, accountId)]
  if (row === undefined || obstacle !== undefined)
    return stalled('NotOffered', `The zone has no object storage: ${obstacle}.`)
  if (observed.isAway === true) return stalled(UNREACHABLE, AWAY)
  if (tenant === undefined || !isTold(observed)) return broughtUp(row)
  return [
    ...recorded(row, tenant),
    {
      do: 'status',
      status: {
        endpoint,
        accessKeyId: row.accessKeyId,
        bucketPrefix: row.backend === 'rgw' ? undefined : row.bucketPrefix,
        backend: row.backend,
        quotaBytes: tenant.quotaBytes,
        usedBytes: tenant.usedBytes,
        objectCount: tenant.objectCount,
        usageMeasuredAt: tenant.measuredAt,
        metered: meteredAfter(object.status?.metered, measurementOf(tenant)),
      },
      conditions: [
        ...healthConditions('ready', tenant.isSuspended ? 'Suspended' : 'Served', ''),
        { type: 'Claimed', status: 'True', reason: 'Claimed', message: '' },
      ],
    },
    { do: 'wait', seconds: LOOK_SECONDS, for: 'a change' },
  ]
}

const stalled = (reason: string, message: string): readonly ObjectStorageAction[] => [
  { do: 'status', status: {}, conditions: healthConditions('stalled', reason, message) },
  { do: 'wait', seconds: LOOK_SECONDS, for: 'a change' },
]

function* claim({ metadata, spec, status }: ObjectStorageObject, accountId: string): Generator<ObjectStorageAction> {
  const refusal = status?.conditions?.find(({ type, status: is }) => type === 'Claimed' && is === 'False')
  yield { do: 'effect', name: 'open', input: { accountId, id: metadata.name, zone: spec.zone } }
  if (refusal !== undefined)
    yield { do: 'status', status: {}, conditions: healthConditions('stalled', refusal.reason, refusal.message) }
  yield { do: 'wait', seconds: refusal === undefined ? 0 : LOOK_SECONDS, for: 'the claim' }
}

/** A tenant with buckets stays, and so does one that cannot be inspected. As long as it stays it is used and billed:
 *  the store is configured with what its row says, and what it holds is recorded. */
function leave(observed: Observed): readonly ObjectStorageAction[] {
  const { row, tenant, obstacle, isAway } = observed
  if (row === undefined) return [{ do: 'finalized' }]
  const waiting = (reason: string, message: string): readonly ObjectStorageAction[] => [
    { do: 'status', status: {}, conditions: healthConditions('reconciling', reason, message) },
    { do: 'wait', seconds: LOOK_SECONDS, for: 'it to be empty' },
  ]
  if (obstacle !== undefined) return waiting('NotOffered', `Nothing can tell whether it is empty: ${obstacle}.`)
  if (isAway === true) return waiting(UNREACHABLE, AWAY)
  if (tenant !== undefined && tenant.bucketCount > 0)
    return isTold(observed)
      ? [...recorded(row, tenant), ...waiting('InUse', 'It is deleted when its buckets are deleted.')]
      : broughtUp(row)
  return [
    { do: 'effect', name: 'remove', input: { row } },
    { do: 'wait', seconds: 0, for: 'the next look' },
  ]
}

/** All stores that know it are configured with what its row says. */
const isTold = (observed: Observed): boolean =>
  observed.tenant !== undefined &&
  observed.wanted !== undefined &&
  isSame(observed.tenant, observed.wanted) &&
  isEntranceRight(observed)

const broughtUp = (row: ObjectStorageRow): readonly ObjectStorageAction[] => [
  { do: 'effect', name: 'bringUp', input: { row } },
  { do: 'wait', seconds: 0, for: 'the store to know it' },
]

const isSame = (tenant: TenantState, wanted: NonNullable<Observed['wanted']>): boolean =>
  tenant.accessKeyId === wanted.accessKeyId &&
  (tenant.bucketPrefix ?? wanted.bucketPrefix) === wanted.bucketPrefix &&
  tenant.quotaBytes === wanted.quotaBytes &&
  tenant.isSuspended === wanted.isSuspended &&
  tenant.isFrozen === wanted.isFrozen &&
  tenant.secretFingerprint === wanted.secretFingerprint

/** After a move, clients still connect through the store that it was on. */
const isEntranceRight = ({ entrance, wanted }: Observed): boolean =>
  entrance === undefined ||
  (entrance.tenant !== undefined &&
    wanted !== undefined &&
    isSame(entrance.tenant, wanted) &&
    isDeepStrictEqual(entrance.tenant.upstream, entrance.upstream))

function recorded(row: ObjectStorageRow, tenant: TenantState): readonly ObjectStorageAction[] {
  const isKnown =
    row.usedBytes === tenant.usedBytes &&
    row.objectCount === tenant.objectCount &&
    row.usageMeasuredAt?.getTime() === Date.parse(tenant.measuredAt)
  return isKnown ? [] : [{ do: 'effect', name: 'record', input: { row, tenant } }]
}
