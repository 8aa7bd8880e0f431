/** The pool's plan: pure, synchronous, total. `controllers/kit/operation/plan.ts` has what is the same for every noun
 *  with operations. PostgreSQL decides which addresses a pool assigns; here its mirror there is maintained. */
import type { KindOf } from '../../../domain/operations.ts'
import { isDeepStrictEqual } from 'node:util'
import type { AddressPool } from '../../../db/public-pool/index.ts'
import { defined } from '../../../domain/defined.ts'
import { canonicalPool, poolFault, poolTotal, type PublicPoolState } from '../../../domain/public-pool/rules.ts'
import { isPrivateNetwork } from '../../../domain/network/addresses.ts'
import type { KubeObject } from '../../../kit/kube/object.ts'
import type { ConditionDraft } from '../../../kit/reconcile/action.ts'
import { PublicPool, type PublicPoolSpec, type PublicPoolStatus } from '../../../resources/public-pool/index.ts'
import type { AuditEffects } from '../../kit/audit.ts'
import type { ActionWith } from '../../kit/effects.ts'
import { healthConditions } from '../../kit/health.ts'
import { operationActions, type OperationDecision, waitActions } from '../../kit/operation/decision.ts'
import { type During, planOperations } from '../../kit/operation/plan.ts'
import { activeOperation, operationActionOf } from '../../kit/operation/stanza.ts'
import { refusalOf } from '../../kit/refusal.ts'

export type PoolObject = KubeObject<PublicPoolSpec, PublicPoolStatus>

export interface Observed {
  /** The pool in PostgreSQL; undefined when it is not there. */
  readonly mirror: AddressPool | undefined
  /** How many of its addresses are in use. */
  readonly allocated: number
  /** The actor of the edit that has no operation. */
  readonly editor: string
}

/** The effects of pools by name, each with its input. */
export interface PublicPoolEffects extends AuditEffects {
  /** Writes the pool to PostgreSQL. */
  readonly mirror: AddressPool
  readonly forget: { readonly id: string }
  /** Mails the owners of prefixes of a pool that is drained. */
  readonly notify: { readonly id: string; readonly operationId: string }
}
type PublicPoolAction = ActionWith<PublicPoolEffects>

interface ReconcileInput {
  readonly pool: PoolObject
  readonly observed: Observed
}

interface Decision extends OperationDecision<PublicPoolAction, KindOf<'public_pool'>> {
  /** The status with its conditions; unchanged when absent. */
  readonly status?: { readonly status: Partial<PublicPoolStatus>; readonly conditions: readonly ConditionDraft[] }
  /** Why a deletion is not finished; the error of its operation when that is late. */
  readonly detail?: string
  /** Nothing of the pool is left anywhere. */
  readonly isGone?: boolean
}

/** What an operation does to a pool: from its arguments, because its kind does not say. */
export type PoolAction = 'create' | 'update' | 'delete'

/** Condition with the reason why PostgreSQL did not accept the pool. */
export const MIRRORED = 'Mirrored'
const LOOK_SECONDS = 1
const IN_USE_LOOK_SECONDS = 10
const EDITED_FIELDS: Readonly<Record<PoolAction, string>> = { create: 'cidr', update: 'state', delete: '' }

export const plan = planOperations<PoolObject, Observed, ReconcileInput, Decision, PublicPoolAction>({
  label: 'A public pool',
  endedByDeletion: 'all',
  flows: { 'public_pool.sync': (input) => (isLeaving(input.pool) ? remove(input) : synchronize(input)) },
  inputOf: (pool, observed) => ({ pool, observed }),
  unchanged: () => ({}),
  detectEdit({ pool, observed }) {
    const action = detectEdit(pool)
    return (
      action && {
        kind: 'public_pool.sync',
        field: fieldOf(action),
        arguments: { action },
        actor: observed.editor,
      }
    )
  },
  idle: (input) => (isLeaving(input.pool) ? remove(input) : idle(input)),
  overdue,
  // The entry is written once: by the request or here, whichever is first.
  auditedAs: (operation) => `public_pool.${operationActionOf(operation) ?? 'update'}`,
  toActions: ({ pool }, decision) => [
    ...(decision.actions ?? []),
    ...operationActions(pool, decision),
    ...(decision.status === undefined ? [] : [{ do: 'status', ...decision.status } as const]),
    ...(decision.isGone === true ? [{ do: 'finalized' } as const] : []),
    ...waitActions(decision),
  ],
})

/** The field of the spec that such an edit changes. */
export const fieldOf = (action: PoolAction): string => EDITED_FIELDS[action]

/** The action of a direct edit; undefined when the spec and the operations agree. A pool that was not accepted is not
 *  tried again: nothing that was refused can be edited. */
export function detectEdit(pool: PoolObject): PoolAction | undefined {
  const { metadata, spec, status } = pool
  const hasDeletion = operationActionOf(spec.operation) === 'delete'
  if (metadata.deletionTimestamp !== undefined) return hasDeletion ? undefined : 'delete'
  if (activeOperation(pool) !== undefined || hasDeletion) return undefined
  if (spec.operation === undefined && status?.state === undefined) return 'create'
  return status?.state !== undefined && status.state !== spec.state ? 'update' : undefined
}

const isLeaving = ({ metadata, spec }: PoolObject): boolean =>
  metadata.deletionTimestamp !== undefined || operationActionOf(spec.operation) === 'delete'

/** It assigns no more addresses from now on, and is deleted when none is in use, however long that takes. */
function remove({ pool, observed: { mirror, allocated } }: ReconcileInput): Decision {
  const { name, deletionTimestamp } = pool.metadata
  if (deletionTimestamp === undefined)
    return { step: 'announced', actions: [{ do: 'remove', type: PublicPool, key: { name } }] }
  if (allocated === 0)
    return {
      step: 'announced',
      outcome: 'succeeded',
      actions: [{ do: 'effect', name: 'forget', input: { id: name } }],
      status: statusOf('retired', 'Retired', ''),
      isGone: true,
    }
  const detail = `${allocated} of its addresses are in use; it goes when they are not.`
  return {
    step: 'announced',
    actions:
      mirror?.state === 'active' ? [{ do: 'effect', name: 'mirror', input: { ...mirror, state: 'draining' } }] : [],
    status: statusOf('draining', 'InUse', detail),
    detail,
    waitFor: 'its addresses to be free',
    waitSeconds: IN_USE_LOOK_SECONDS,
  }
}

/** Steps in order: mirrored, announced. */
function synchronize({ pool, observed, operation }: During<ReconcileInput>): Decision {
  const { spec, status, metadata } = pool
  const refusal = faultOf(pool) ?? refusalOf(pool, MIRRORED)?.message
  if (refusal !== undefined) return failed(refusal)
  if (!isMirrored(pool, observed))
    return {
      step: 'mirrored',
      actions: [mirrorAction(pool)],
      waitFor: 'the database',
      waitSeconds: LOOK_SECONDS,
    }
  const isDrained = spec.state === 'draining' && status?.state !== 'draining' && spec.use === 'server_ipv6_prefix'
  return {
    step: 'announced',
    outcome: 'succeeded',
    actions: isDrained
      ? [{ do: 'effect', name: 'notify', input: { id: metadata.name, operationId: operation.id } }]
      : [],
    status: healthy(pool),
  }
}

/** A deletion continues after its operation has failed. */
function overdue({ pool }: ReconcileInput, decision: Decision): Decision {
  if (!isLeaving(pool)) return failed('It was not done in time.')
  return decision.detail === undefined ? decision : { ...decision, outcome: 'failed', error: decision.detail }
}

/** The mirror follows the pool, whatever happened to the mirror. */
function idle({ pool, observed }: ReconcileInput): Decision {
  if (pool.status?.state === undefined) return {}
  return isMirrored(pool, observed)
    ? { status: healthy(pool) }
    : { actions: [mirrorAction(pool)], waitFor: 'the database', waitSeconds: LOOK_SECONDS }
}

/** The pool in the form of PostgreSQL. With kubectl, addresses may have any notation. */
export const poolOf = ({
  metadata: { name },
  spec: { zone, family, cidr, use, gateway, state },
}: PoolObject): AddressPool => canonicalPool({ id: name, zone, family, cidr, use, state, ...defined({ gateway }) })

const isMirrored = (pool: PoolObject, { mirror: known }: Observed): boolean =>
  known !== undefined && isDeepStrictEqual(canonicalPool(known), poolOf(pool))
const mirrorAction = (pool: PoolObject): PublicPoolAction => ({ do: 'effect', name: 'mirror', input: poolOf(pool) })

function faultOf({ spec }: PoolObject): string | undefined {
  const fault = poolFault({ ...spec, isPrivate: spec.isPrivate ?? isPrivateNetwork(spec.cidr) })
  return fault && `${fault.field} ${fault.detail}.`
}

const statusOf = (state: PublicPoolState, reason: string, detail: string): Decision['status'] & {} => ({
  status: { state },
  conditions: healthConditions(state === 'retired' || reason === 'InUse' ? 'reconciling' : 'ready', reason, detail),
})
const healthy = ({ spec }: PoolObject): Decision['status'] & {} => ({
  status: { state: spec.state, total: poolTotal(spec.cidr) },
  conditions: healthConditions('ready', spec.state === 'active' ? 'Active' : 'Draining', ''),
})
const failed = (error: string): Decision => ({
  step: 'mirrored',
  outcome: 'failed',
  error,
  status: { status: {}, conditions: healthConditions('stalled', 'Refused', error) },
})
