/** The records of operations: the Operation object while it runs, a row of history when it has finished. The order
 *  keeps every operation complete across crashes: history first, then the mirror that frees the target, and last the
 *  final status of the object (`reconciler.ts`). So whoever sees a finished operation finds its target free. */
import { isDeepStrictEqual } from 'node:util'
import { defined } from '../../../domain/defined.ts'
import { type FinishedOperation, type OperationEvent, isFinal, stepsOf } from '../../../domain/operations.ts'
import { findOperation, recordOperation } from '../../../db/operation/index.ts'
import { apiVersionOf, type KubeObject } from '../../../kit/kube/object.ts'
import { isAlreadyExists, isApiError } from '../../../kit/kube/store.ts'
import type { Operations } from '../../../kit/reconcile/operation.ts'
import { accountOfNamespace } from '../../../resources/index.ts'
import { ACCOUNT_LABEL } from '../../../resources/kit/labels.ts'
import {
  carrierOf,
  Operation,
  operationNamespace,
  namedTarget,
  type OperationSpec,
  type OperationState,
  unnamedTarget,
} from '../../../resources/operation/index.ts'
import type { OperationProgress, OperationStanza } from '../../../resources/kit/shapes.ts'
import { snakeCase } from '../../../resources/kit/view.ts'
import { orUnavailable } from '../outage.ts'
import type { Parts } from '../parts.ts'
import { advance, eventsAfter, pendingProgress } from './progress.ts'

export type OperationObject = KubeObject<OperationSpec, OperationState>

interface Target {
  readonly spec: { readonly operation?: OperationStanza }
  readonly status?: { readonly operation?: OperationProgress }
}

/** The history of an operation takes precedence over its object. */
export function operationRecords(parts: Pick<Parts, 'store' | 'caches' | 'db'>): Operations {
  const { caches, db, store } = parts
  return {
    async record(root, action, now) {
      const namespace = operationsNamespaceOf(root)
      const target = root as unknown as Target // roots with operations have these fields
      const before = progressBefore(target, action.id)
      const accountId = accountOfNamespace(namespace) ?? null
      const ended =
        action.outcome === undefined ? undefined : await orUnavailable(findOperation(db, accountId, action.id))
      if (ended !== undefined) return mirrorOf(ended)
      const object = await recordOf(parts, root, before, target.spec.operation)
      const progress = advance(newerProgress(before, object.status), action, now)
      const events = eventsAfter(object.status, progress, action.events, now, unnamedTarget(object.spec.target))
      if (isFinal(progress.status)) {
        await orUnavailable(recordOperation(db, accountId, finished(object, progress, events, now)))
      } else if (
        object.metadata.uid !== undefined &&
        !isDeepStrictEqual({ ...object.status, ...stateOf(progress, events) }, object.status)
      ) {
        caches.apply(
          Operation,
          await store.patch(Operation, { namespace, name: action.id }, { status: stateOf(progress, events) }, 'status'),
        )
      }
      return progress
    },
  }
}

/** The record is written before the mirror, and may be ahead of it. */
const newerProgress = (mirror: OperationProgress, record: OperationState | undefined): OperationProgress =>
  record?.status !== 'running'
    ? mirror
    : {
        ...mirror,
        ...defined({ startedAt: record.startedAt }),
        ...(record.stepIndex > mirror.stepIndex ? { step: record.step, stepIndex: record.stepIndex } : {}),
      }

function progressBefore({ spec, status }: Target, id: string): OperationProgress {
  if (status?.operation?.id === id) return status.operation
  if (spec.operation?.id === id) return pendingProgress(spec.operation)
  throw new Error(`operation ${id} is neither asked for nor under way`)
}

/** The Operation object, created here unless it was created when the operation was accepted. Nothing can be created in
 *  a namespace that is being deleted: there it is only a draft (without uid), and history alone records the
 *  operation. */
async function recordOf(
  { caches, store }: Pick<Parts, 'store' | 'caches'>,
  root: KubeObject,
  progress: OperationProgress,
  stanza: OperationStanza | undefined,
): Promise<OperationObject> {
  const namespace = operationsNamespaceOf(root)
  const key = { namespace, name: progress.id }
  const known = caches.of(Operation).get(key) ?? (await store.get(Operation, key))
  if (known !== undefined) return known
  const accountId = accountOfNamespace(namespace)
  const metadata = { ...key, ...(accountId === undefined ? {} : { labels: { [ACCOUNT_LABEL]: accountId } }) }
  const carrier = stanza?.id === progress.id ? carrierOf(stanza) : undefined
  const spec: OperationSpec = {
    kind: progress.kind,
    target: recordedTargetOf(root),
    ...defined({ carrier }),
    actor: progress.actor,
    requestId: stanza?.id === progress.id ? stanza.requestId : '',
    createdAt: progress.createdAt,
    deadlineAt: progress.deadlineAt,
    stepCount: stepsOf(progress.kind).length,
  }
  try {
    const object = await store.create(Operation, { metadata, spec })
    caches.apply(Operation, object)
    return object
  } catch (error) {
    if (isTerminating(error)) return { apiVersion: apiVersionOf(Operation), kind: Operation.kind, metadata, spec }
    const object = isAlreadyExists(error) ? await store.get(Operation, key) : undefined
    if (object === undefined) throw error
    return object
  }
}

const isTerminating = (error: unknown): boolean =>
  isApiError(error) &&
  error.code === 403 &&
  (error.causes.some(({ reason }) => reason === 'NamespaceTerminating') ||
    error.message.includes('is being terminated'))

/** Kinds whose targets have another name in operations: custom images are templates of an account. */
const OTHER_TARGETS: Readonly<Record<string, OperationSpec['target']['type']>> = { CustomImage: 'template' }

/** The name of a kind in operations: `PublicPool` is `public_pool`. */
export const targetTypeOf = (kind: string): OperationSpec['target']['type'] =>
  OTHER_TARGETS[kind] ??
  // The other kinds with operations have the names of their targets.
  (snakeCase(kind) as OperationSpec['target']['type'])

const targetOf = ({ kind, metadata: { name } }: KubeObject): OperationSpec['target'] => ({
  type: targetTypeOf(kind),
  id: name,
})

function recordedTargetOf({ kind, metadata, spec }: KubeObject): OperationSpec['target'] {
  const { name, ...target } = namedTarget(targetTypeOf(kind), { name: metadata.name, spec })
  return { ...target, ...defined({ name }) }
}

/** The namespace of the root's operations: its own, or the one that represents a root without a namespace. */
export const operationsNamespaceOf = (root: KubeObject): string =>
  root.metadata.namespace ?? operationNamespace(targetOf(root))

/** The finished operation, in the form of history. */
export const finished = (
  object: OperationObject,
  progress: OperationProgress,
  events: readonly OperationEvent[],
  now: Date,
): FinishedOperation => ({
  id: progress.id,
  kind: progress.kind,
  target: object.spec.target,
  ...defined({ carrier: object.spec.carrier }),
  actor: progress.actor,
  requestId: object.spec.requestId,
  status: progress.status,
  step: progress.step,
  stepIndex: progress.stepIndex,
  stepCount: progress.stepCount,
  error: progress.error,
  createdAt: progress.createdAt,
  deadlineAt: progress.deadlineAt,
  startedAt: progress.startedAt ?? null,
  finishedAt: progress.finishedAt ?? now.toISOString(),
  events,
})

/** A finished operation, in the form of its target's mirror. */
const mirrorOf = ({ startedAt, ...operation }: FinishedOperation): OperationProgress => ({
  id: operation.id,
  kind: operation.kind,
  status: operation.status,
  step: operation.step,
  stepIndex: operation.stepIndex,
  stepCount: operation.stepCount,
  error: operation.error,
  actor: operation.actor,
  createdAt: operation.createdAt,
  deadlineAt: operation.deadlineAt,
  finishedAt: operation.finishedAt,
  ...(startedAt === null ? {} : { startedAt }),
})

const stateOf = (progress: OperationProgress, events: readonly OperationEvent[]): OperationState => ({
  status: progress.status,
  step: progress.step,
  stepIndex: progress.stepIndex,
  error: progress.error,
  events: [...events],
  ...defined({ startedAt: progress.startedAt }),
})

/** The final status of the object of a finished operation. */
export const endedState = ({
  status,
  step,
  stepIndex,
  error,
  startedAt,
  finishedAt,
  events,
}: FinishedOperation): OperationState => ({
  status,
  step,
  stepIndex,
  error,
  finishedAt,
  events: [...events],
  ...(startedAt === null ? {} : { startedAt }),
})
