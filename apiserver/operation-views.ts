/** Operations as the API shows them: from their object, or from the history. */
import { type FinishedOperation, stepsOf } from '../domain/operations.ts'
import type { KubeObject } from '../kit/kube/object.ts'
import { type OperationSpec, type OperationState, type OperationView, toOperationView } from '../resources/operation.ts'
import type { OperationProgress } from '../resources/shapes.ts'

export type OperationObject = KubeObject<OperationSpec, OperationState>

/** Where an operation stands in lists. */
export interface Place {
  readonly createdAt: number
  readonly id: string
}
export const placeOf = (view: OperationView): Place => ({ createdAt: Date.parse(view.created_at), id: view.id })
/** Negative when `one` comes first. */
export const compareNewestFirst = (one: Place, other: Place): number => other.createdAt - one.createdAt || (one.id === other.id ? 0 : one.id > other.id ? -1 : 1)

interface StoredEvent {
  readonly at: string
  readonly kind: string
  readonly message: string
  readonly data?: Readonly<Record<string, unknown>> | undefined
}
const eventsOf = (events: readonly StoredEvent[]) => events.map(({ at, kind, message, data }) => ({ at, kind, message, data: { ...data } }))

export function ofObject({ metadata, spec, status }: OperationObject): OperationView {
  const progress: OperationProgress = {
    id: metadata.name, kind: spec.kind, status: status?.status ?? 'pending', step: status?.step ?? stepsOf(spec.kind)[0] ?? '', stepIndex: status?.stepIndex ?? 0,
    stepCount: spec.stepCount, error: status?.error ?? '', actor: spec.actor, createdAt: spec.createdAt, deadlineAt: spec.deadlineAt,
    startedAt: status?.startedAt, finishedAt: status?.finishedAt,
  }
  return { ...toOperationView(progress, spec.target), events: eventsOf(status?.events ?? []) }
}

export function ofHistory(finished: FinishedOperation): OperationView {
  const { startedAt, finishedAt, ...rest } = finished
  const progress: OperationProgress = { ...rest, startedAt: startedAt ?? undefined, finishedAt }
  return { ...toOperationView(progress, finished.target as OperationSpec['target']), events: eventsOf(finished.events) } // the reconciler recorded a target of these
}
