/** Progress of operations, as controllers report it on what the operation is about. */
import type { OperationProgress, OperationStanza } from '../resources/kit/shapes.ts'

/** Of an operation that succeeded in one step, unless `changes` say otherwise. */
export const progressOf = (
  { id, kind, actor, requestedAt, deadlineAt }: OperationStanza,
  changes: Partial<OperationProgress> = {},
): OperationProgress => ({
  id,
  kind,
  status: 'succeeded',
  step: 'done',
  stepIndex: 0,
  stepCount: 1,
  error: '',
  actor,
  createdAt: requestedAt,
  deadlineAt,
  finishedAt: requestedAt,
  ...changes,
})
