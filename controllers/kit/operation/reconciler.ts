/** The operation controller: completes the record as history has it, ends operations that lost their target, and
 *  removes old records. The reconciler of the target writes a running operation. */
import { defined } from '../../../domain/defined.ts'
import { type FinishedOperation, isFinal } from '../../../domain/operations.ts'
import { findOperation, recordOperation } from '../../../db/operation/index.ts'
import type { EventDraft } from '../../../kit/reconcile/events.ts'
import { watch } from '../../../kit/reconcile/reconciler.ts'
import { accountOfNamespace } from '../../../resources/index.ts'
import {
  type Operable,
  Operation,
  operationNamespace,
  type OperationSpec,
  type OperationState,
} from '../../../resources/operation/index.ts'
import type { OperationProgress } from '../../../resources/kit/shapes.ts'
import type { KubeObject, ResourceType } from '../../../kit/kube/object.ts'
import { auditedAs, auditEffect } from '../audit.ts'
import { controller, type Registration } from '../controller.ts'
import { orUnavailable } from '../outage.ts'
import type { ActionWith, EffectOn } from '../effects.ts'
import type { Parts } from '../parts.ts'
import { advance, eventsAfter, eventsOf } from './progress.ts'
import { endedState, finished, type OperationObject, operationsNamespaceOf, targetTypeOf } from './record.ts'

/** How long the object of a finished operation is kept beside its row of history. */
export const ENDED_KEPT_MILLISECONDS = 3_600_000

const operationsOf = (target: KubeObject<Operable['spec'], Operable['status']>) => {
  const namespace = operationsNamespaceOf(target)
  return [...new Set([target.spec.operation?.id, target.status?.operation?.id])].flatMap((name) =>
    name === undefined ? [] : [{ namespace, name }],
  )
}

export interface Observed {
  /** Read only when the plan depends on it. */
  readonly history: FinishedOperation | undefined
  /** What the target shows of this operation; `gone` when it has another operation or does not exist. */
  readonly target: 'busy' | 'free' | 'gone'
}

/** Every kind that has operations. */
export type OperationTargets = readonly ResourceType<Operable['spec'], Operable['status']>[]

interface OperationEffects {
  /** Ends an operation whose target no longer exists or has another operation. */
  readonly abandon: NoInput
  /** Writes a finished operation into history that lacks it. */
  readonly keep: NoInput
}
type NoInput = Readonly<Record<never, never>>
type OperationEffect = EffectOn<NoInput, OperationSpec, OperationState>

export const operationController = (targets: OperationTargets): Registration<Parts> =>
  controller<OperationEffects>()({
    name: 'operation',
    resource: Operation,
    sharding: 'common',
    plan,
    reads: targets,
    writes: [Operation],
    open: (parts: Parts) => ({
      watches: targets.map((type) => watch(type, operationsOf)),
      observe: (operation: OperationObject, now: Date) => observe(parts, targets, operation, now),
      effects: { abandon: abandonEffect(parts), keep: keepEffect(parts) },
    }),
  })

/** Guards in order: finished and old, finished, in history but not yet on the object, target gone. */
export function plan(
  operation: OperationObject,
  observed: Observed,
  now: Date,
): readonly ActionWith<OperationEffects>[] {
  const {
    status,
    metadata: { namespace = '', name },
  } = operation
  if (status !== undefined && isFinal(status.status)) {
    const remaining = keptMilliseconds(status, now)
    if (remaining > 0) return [{ do: 'wait', seconds: Math.ceil(remaining / 1_000), for: 'the record to be old' }]
    return [
      ...(observed.history === undefined ? [{ do: 'effect', name: 'keep', input: {} } as const] : []),
      { do: 'remove', type: Operation, key: { namespace, name } },
    ]
  }
  if (observed.target === 'busy') return []
  if (observed.history !== undefined) return [{ do: 'status', status: { ...endedState(observed.history) } }]
  return observed.target === 'gone' ? [{ do: 'effect', name: 'abandon', input: {} }] : []
}

/** How much longer the object of a finished operation is kept. */
const keptMilliseconds = ({ finishedAt = '' }: OperationState, now: Date): number =>
  Date.parse(finishedAt) + ENDED_KEPT_MILLISECONDS - now.getTime()

async function observe(
  parts: Parts,
  targets: OperationTargets,
  operation: OperationObject,
  now: Date,
): Promise<Observed> {
  const {
    metadata: { namespace = '', name },
    status,
  } = operation
  const isEnded = status !== undefined && isFinal(status.status)
  const target = isEnded ? 'free' : await targetOf(parts, targets, operation)
  // The target is released after history is written, so history is read after the target.
  const isHistoryWanted = isEnded ? !(keptMilliseconds(status, now) > 0) : target !== 'busy'
  return {
    target,
    history: isHistoryWanted
      ? await orUnavailable(findOperation(parts.db, accountOfNamespace(namespace) ?? null, name))
      : undefined,
  }
}

async function targetOf(
  { caches, store }: Parts,
  targets: OperationTargets,
  { metadata: { namespace = '', name }, spec }: OperationObject,
): Promise<Observed['target']> {
  // Operators' templates and those of accounts are targets of one name: only the former are in no namespace.
  const isOfCluster = namespace === operationNamespace(spec.target)
  const type = targets.find(
    ({ kind, scope }) => targetTypeOf(kind) === spec.target.type && (scope === 'Cluster') === isOfCluster,
  )
  if (type === undefined) return 'gone'
  const key = type.scope === 'Cluster' ? { name: spec.target.id } : { namespace, name: spec.target.id }
  const stand = standOf(caches.of(type).get(key), name)
  // The record may be in the cache before its target is: nothing is abandoned because of a cache alone.
  return stand === 'gone' ? standOf(await store.get(type, key), name) : stand
}

function standOf(target: KubeObject<Operable['spec'], Operable['status']> | undefined, id: string): Observed['target'] {
  const progress = target?.status?.operation
  if (progress?.id === id) return isFinal(progress.status) ? 'free' : 'busy'
  return target?.spec.operation?.id === id ? 'busy' : 'gone'
}

/** The target was deleted, or was given another operation, before this one could start: cancelled. An operation without
 *  a request still gets its audit entry: its target would have written it at the start. */
function abandonEffect({ db, clock, random }: Parts): OperationEffect {
  const audit = auditEffect({ db, clock, random })
  return async (_input, operation) => {
    const now = clock.now()
    const { metadata, spec } = operation
    if (spec.requestId === metadata.name)
      await audit(
        { action: auditedAs(spec.kind), actor: spec.actor, requestId: spec.requestId },
        { ...operation, metadata: { ...metadata, name: spec.target.id } },
      )
    const before = progressOf(operation)
    const progress = advance(before, { do: 'operation', id: before.id, step: before.step, outcome: 'cancelled' }, now)
    const ended = finished(operation, progress, eventsAfter(operation.status, progress, [], now), now)
    await orUnavailable(recordOperation(db, accountOfNamespace(operation.metadata.namespace ?? '') ?? null, ended))
    return { status: { ...endedState(ended) }, events: [abandonedEvent(ended)] }
  }
}

/** The target, where people would look for events, may no longer exist: the events are on the Operation. */
const abandonedEvent = ({ id, kind, target }: FinishedOperation): EventDraft => ({
  type: 'Warning',
  reason: 'OperationCancelled',
  action: kind,
  note: `${kind} was cancelled before it began: ${target.type} ${target.id} was deleted, or has another operation.`,
  id,
})

/** Writes a finished operation into history that lacks it. */
const keepEffect =
  ({ db, clock }: Parts): OperationEffect =>
  async (_input, operation) => {
    const ended = finished(operation, progressOf(operation), eventsOf(operation.status), clock.now())
    await orUnavailable(recordOperation(db, accountOfNamespace(operation.metadata.namespace ?? '') ?? null, ended))
    return undefined
  }

function progressOf({ metadata, spec, status }: OperationObject): OperationProgress {
  const { kind, actor, createdAt, deadlineAt, stepCount } = spec
  return {
    id: metadata.name,
    kind,
    actor,
    createdAt,
    deadlineAt,
    stepCount,
    status: status?.status ?? 'pending',
    step: status?.step ?? '',
    stepIndex: status?.stepIndex ?? 0,
    error: status?.error ?? '',
    ...defined({ startedAt: status?.startedAt, finishedAt: status?.finishedAt }),
  }
}
