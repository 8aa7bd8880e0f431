/** The progress of an operation: pure. The mirror on the target and the events of the record are both derived from
 *  it. */
import { defined } from '../../../domain/defined.ts'
import { isFinal, OPERATION_EVENTS_MAXIMUM, type OperationEvent, stepsOf } from '../../../domain/operations.ts'
import type { OperationAction } from '../../../kit/reconcile/action.ts'
import type { OperationState } from '../../../resources/operation/index.ts'
import type { OperationProgress, OperationStanza } from '../../../resources/kit/shapes.ts'

/** An operation that was requested and has not started. */
export const pendingProgress = (stanza: OperationStanza): OperationProgress => ({
  id: stanza.id,
  kind: stanza.kind,
  status: 'pending',
  step: stepsOf(stanza.kind)[0] ?? '',
  stepIndex: 0,
  stepCount: stepsOf(stanza.kind).length,
  error: '',
  actor: stanza.actor,
  createdAt: stanza.requestedAt,
  deadlineAt: stanza.deadlineAt,
})

/** The progress after the action. A finished operation stays as it is, and the step never goes back. */
export function advance(before: OperationProgress, action: OperationAction, now: Date): OperationProgress {
  if (isFinal(before.status)) return before
  const at = now.toISOString()
  const begun = { ...before, startedAt: before.startedAt ?? action.startedAt ?? at }
  const steps: readonly string[] = stepsOf(before.kind)
  const index = steps.indexOf(action.step)
  const moved = index > before.stepIndex ? { ...begun, step: action.step, stepIndex: index } : begun
  if (action.outcome === undefined) return { ...moved, status: 'running' }
  if (action.outcome === 'succeeded')
    return {
      ...moved,
      status: 'succeeded',
      step: stepsOf(before.kind).at(-1) ?? moved.step,
      stepIndex: before.stepCount,
      finishedAt: at,
    }
  return {
    ...moved,
    status: action.outcome,
    finishedAt: at,
    ...(action.outcome === 'failed' ? { error: action.error ?? 'The operation failed.' } : {}),
  }
}

/** The events of the record after the progress: an event that it has already is not added again; the newest are kept.
 *  `target` is attached to the first. */
export function eventsAfter(
  record: Pick<OperationState, 'status' | 'step' | 'stepIndex' | 'events'> | undefined,
  progress: OperationProgress,
  added: OperationAction['events'],
  now: Date,
  target?: Readonly<Record<string, string>>,
): readonly OperationEvent[] {
  const known = eventsOf(record)
  const hasBegun = record !== undefined && record.status !== 'pending'
  const news = [
    ...(hasBegun
      ? []
      : [
          {
            ...defined({ at: progress.startedAt }),
            kind: 'started',
            message: 'The operation began.',
            ...defined({ data: target }),
          },
        ]),
    ...(hasBegun && record.step === progress.step ? [] : stepEvents(hasBegun ? record : undefined, progress)),
    ...(added ?? []),
    ...(isFinal(progress.status) ? [{ kind: progress.status, message: endOf(progress) }] : []),
  ].filter(
    (event) =>
      event.kind === 'step' || !known.some((before) => before.kind === event.kind && before.message === event.message),
  )
  return [...known, ...news.map((event) => ({ at: now.toISOString(), ...event }))].slice(-OPERATION_EVENTS_MAXIMUM)
}

/** One event for the current step of the operation, and for each step that it has passed since the record was
 *  written. */
function stepEvents(
  record: Pick<OperationState, 'stepIndex'> | undefined,
  { kind, step, stepIndex }: OperationProgress,
) {
  const steps: readonly string[] = stepsOf(kind)
  const known = steps.indexOf(step)
  const index = known === -1 ? stepIndex : known
  const passed = steps.slice(record === undefined ? 0 : record.stepIndex + 1, index)
  return [...passed, step].map((name, offset) => ({
    kind: 'step',
    message: `Step ${name}.`,
    data: { step: name, step_index: index - passed.length + offset },
  }))
}

/** Oldest first; none before there is a record. */
export const eventsOf = (record: Pick<OperationState, 'events'> | undefined): readonly OperationEvent[] =>
  (record?.events ?? []).map(({ data, ...event }) => (data === undefined ? event : { ...event, data }))

const endOf = ({ status, error }: OperationProgress): string =>
  status === 'failed' ? error : status === 'succeeded' ? 'The operation succeeded.' : 'The operation was cancelled.'
