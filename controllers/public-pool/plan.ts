/** The pool's plan: pure, synchronous, total. Guards in order: an operation that another one replaced, an edit without
 *  an operation, leaving,
 *  the operation under way, and a pool at rest. What a pool gives is decided in PostgreSQL; here its mirror there is
 *  kept right. */
import { isDeepStrictEqual } from 'node:util'
import type { Pool } from '../../db/public-pool/index.ts'
import { canonicalPool, poolFault, poolTotal, type PoolState } from '../../domain/public-pool.ts'
import { isPrivateNetwork } from '../../domain/addresses.ts'
import type { KubeObject } from '../../kit/kube/object.ts'
import type { Action, OperationOutcome } from '../../kit/reconcile/action.ts'
import { PublicPool, type PublicPoolSpec, type PublicPoolStatus } from '../../resources/public-pool/index.ts'
import type { OperationStanza } from '../../resources/shapes.ts'
import { healthConditions } from '../health.ts'
import { activeOperation, replacedProgress, derivedStanza } from '../operation/stanza.ts'
import { refusalOf } from '../refusal.ts'

export type PoolObject = KubeObject<PublicPoolSpec, PublicPoolStatus>

export interface Observed {
  /** The pool as PostgreSQL has it; undefined when it has not. */
  readonly mirror: Pool | undefined
  /** How many of its addresses somebody uses. */
  readonly allocated: number
  /** Who made the edit that no operation stands for, as an actor. */
  readonly editor: string
}

/** What is done to a pool; the operation says it, because its kind does not. */
export type PoolAction = 'create' | 'update' | 'delete'
const actionOf = (operation: Pick<OperationStanza, 'arguments'> | undefined): string | undefined =>
  operation?.arguments?.['action']

/** Condition that says why PostgreSQL did not take the pool. */
export const MIRRORED = 'Mirrored'
const LOOK_SECONDS = 1
const IN_USE_LOOK_SECONDS = 10

export function plan(pool: PoolObject, observed: Observed, now: Date): readonly Action[] {
  const replaced = replacedProgress(pool)
  if (replaced !== undefined) return [{ do: 'operation', id: replaced.id, step: replaced.step, outcome: 'cancelled' }]
  const edit = detectEdit(pool)
  if (edit !== undefined) return [adopt(pool, edit, observed.editor, now)]
  const operation = activeOperation(pool)
  const began = operation === undefined || pool.status?.operation?.id === operation.id ? [] : [auditOf(operation)]
  return [
    ...began,
    ...(isLeaving(pool)
      ? remove(pool, observed, operation, now)
      : operation === undefined
        ? idle(pool, observed)
        : synchronize(pool, observed, operation, now)),
  ]
}

/** What an edit asks for; undefined when the spec and the operations agree. What could not be taken over is not tried
 *  again: none of it can be edited. */
export function detectEdit(pool: PoolObject): PoolAction | undefined {
  const { metadata, spec, status } = pool
  const hasDeletion = actionOf(spec.operation) === 'delete'
  if (metadata.deletionTimestamp !== undefined) return hasDeletion ? undefined : 'delete'
  if (activeOperation(pool) !== undefined || hasDeletion) return undefined
  if (spec.operation === undefined && status?.state === undefined) return 'create'
  return status?.state !== undefined && status.state !== spec.state ? 'update' : undefined
}

/** Its id follows from the generation that was seen, so that trying again is the same operation. */
function adopt({ metadata }: PoolObject, action: PoolAction, actor: string, now: Date): Action {
  const operation = derivedStanza('public_pool.sync', {
    seed: `${metadata.uid ?? ''}/${metadata.generation ?? 0}/${action}`,
    actor,
    now,
  })
  return { do: 'change', patch: { spec: { operation: { ...operation, arguments: { action } } } } }
}

/** The entry in the operators' log; free when the request that asked has written it. */
const auditOf = (operation: OperationStanza): Action => ({
  do: 'effect',
  name: 'audit',
  input: {
    action: `public_pool.${actionOf(operation) ?? 'update'}`,
    actor: operation.actor,
    requestId: operation.requestId,
  },
})

const isLeaving = ({ metadata, spec }: PoolObject): boolean =>
  metadata.deletionTimestamp !== undefined || actionOf(spec.operation) === 'delete'

/** It gives nothing more at once, and goes when nobody has an address of it, however long that takes. */
function remove(
  pool: PoolObject,
  { mirror, allocated }: Observed,
  operation: OperationStanza | undefined,
  now: Date,
): readonly Action[] {
  const progressed = (outcome?: OperationOutcome, error?: string): readonly Action[] =>
    operation === undefined ? [] : [step(operation, 'told', outcome, error)]
  const remove: readonly Action[] =
    pool.metadata.deletionTimestamp === undefined
      ? [{ do: 'remove', type: PublicPool, key: { name: pool.metadata.name } }]
      : []
  if (remove.length > 0) return [...remove, ...progressed()]
  if (allocated === 0)
    return [
      { do: 'effect', name: 'forget', input: { id: pool.metadata.name } },
      ...progressed('succeeded'),
      statusOf('retired', 'Retired', ''),
      { do: 'finalized' },
    ]
  const drain: readonly Action[] =
    mirror?.state === 'active' ? [{ do: 'effect', name: 'mirror', input: { ...mirror, state: 'draining' } }] : []
  const detail = `${allocated} of its addresses are in use; it goes when they are not.`
  const isLate = operation !== undefined && now.getTime() >= Date.parse(operation.deadlineAt)
  return [
    ...drain,
    ...(isLate ? progressed('failed', detail) : progressed()),
    statusOf('draining', 'InUse', detail),
    { do: 'wait', seconds: IN_USE_LOOK_SECONDS, for: 'its addresses to be free' },
  ]
}

/** Steps in order: mirrored, told. */
function synchronize(pool: PoolObject, observed: Observed, operation: OperationStanza, now: Date): readonly Action[] {
  const { spec, status } = pool
  const refusal = faultOf(pool) ?? refusalOf(pool, MIRRORED)?.message
  if (refusal !== undefined) return [step(operation, 'mirrored', 'failed', refusal), failure(refusal)]
  if (!isMirrored(pool, observed)) {
    const isLate = now.getTime() >= Date.parse(operation.deadlineAt)
    return isLate
      ? [step(operation, 'mirrored', 'failed', 'It was not done in time.'), failure('It was not done in time.')]
      : [mirror(pool), step(operation, 'mirrored'), { do: 'wait', seconds: LOOK_SECONDS, for: 'the database' }]
  }
  const isDrained = spec.state === 'draining' && status?.state !== 'draining' && spec.use === 'server_ipv6_prefix'
  return [
    ...(isDrained
      ? [{ do: 'effect', name: 'notify', input: { id: pool.metadata.name, operationId: operation.id } } as const]
      : []),
    step(operation, 'told', 'succeeded'),
    healthy(pool),
  ]
}

/** The mirror follows what was brought about, whatever became of it. */
const idle = (pool: PoolObject, observed: Observed): readonly Action[] =>
  pool.status?.state === undefined || isMirrored(pool, observed)
    ? pool.status?.state === undefined
      ? []
      : [healthy(pool)]
    : [mirror(pool), { do: 'wait', seconds: LOOK_SECONDS, for: 'the database' }]

const step = (operation: OperationStanza, name: string, outcome?: OperationOutcome, error?: string): Action => ({
  do: 'operation',
  id: operation.id,
  step: name,
  ...(outcome === undefined ? {} : { outcome }),
  ...(error === undefined ? {} : { error }),
})

/** As PostgreSQL shall have it. With kubectl addresses come in any form. */
export const poolOf = ({ metadata: { name }, spec: { zone, family, cidr, use, gateway, state } }: PoolObject): Pool =>
  canonicalPool({ id: name, zone, family, cidr, use, state, ...(gateway === undefined ? {} : { gateway }) })

const isMirrored = (pool: PoolObject, { mirror: known }: Observed): boolean =>
  known !== undefined && isDeepStrictEqual(canonicalPool(known), poolOf(pool))
const mirror = (pool: PoolObject): Action => ({ do: 'effect', name: 'mirror', input: { ...poolOf(pool) } })

function faultOf({ spec }: PoolObject): string | undefined {
  const fault = poolFault({ ...spec, isPrivate: spec.isPrivate ?? isPrivateNetwork(spec.cidr) })
  return fault && `${fault.field} ${fault.detail}.`
}

const statusOf = (state: PoolState, reason: string, detail: string): Action => ({
  do: 'status',
  status: { state },
  conditions: healthConditions(state === 'retired' || reason === 'InUse' ? 'reconciling' : 'ready', reason, detail),
})
const healthy = ({ spec }: PoolObject): Action => ({
  do: 'status',
  status: { state: spec.state, total: poolTotal(spec.cidr) },
  conditions: healthConditions('ready', spec.state === 'active' ? 'Active' : 'Draining', ''),
})
const failure = (detail: string): Action => ({
  do: 'status',
  status: {},
  conditions: healthConditions('stalled', 'Refused', detail),
})
