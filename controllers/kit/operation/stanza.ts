/** The stanza of an operation, on any object that has one: which operation is under way, and how the platform starts
 *  one by itself. Pure. */
import { deadlineOf, isFinal, type OperationKind } from '../../../domain/operations.ts'
import { derivedId } from '../../../domain/uuid.ts'
import type { Operable } from '../../../resources/operation/index.ts'
import type { OperationProgress, OperationStanza } from '../../../resources/kit/shapes.ts'

/** The operation under way; undefined when there is none or it has ended. */
export function activeOperation({ spec, status }: Operable): OperationStanza | undefined {
  const stanza = spec.operation
  const progress = status?.operation
  if (stanza === undefined) return undefined
  return progress?.id === stanza.id && isFinal(progress.status) ? undefined : stanza
}

/** What an operation does to its target: from its arguments where its kind does not say (`edge.sync`,
 *  `edge.delete`). */
export function operationActionOf(
  operation: Pick<OperationStanza, 'arguments' | 'kind'> | undefined,
): string | undefined {
  const [, verb] = operation?.kind.split('.') ?? []
  return operation?.arguments?.['action'] ?? (verb === 'sync' ? undefined : verb)
}

/** Whether the operation is in the status of its target. */
export const hasBegun = ({ status }: Operable, operation: OperationStanza): boolean =>
  status?.operation?.id === operation.id

/** The progress of an operation that another one replaced before it had ended. */
export function replacedOperation({ spec, status }: Operable): OperationProgress | undefined {
  const progress = status?.operation
  return progress === undefined || isFinal(progress.status) || progress.id === spec.operation?.id ? undefined : progress
}

export const isPastDeadline = ({ deadlineAt }: OperationStanza, now: Date): boolean =>
  now.getTime() >= Date.parse(deadlineAt)

export interface DerivedStanza {
  /** Identifies the operation among those of its kind; a retry with the same seed is the same operation. */
  readonly seed: string
  readonly actor: string
  readonly now: Date
  /** The data to move, for kinds whose deadline depends on it. */
  readonly gibibytes?: number
  readonly arguments?: Readonly<Record<string, string>>
}

/** The id of an operation of the kind that no request started. */
export const derivedIdOf = (kind: OperationKind, seed: string): string => derivedId(`${seed}/${kind}`)

/** A stanza that no request wrote: its request id is its own id, so its reconciler writes the audit entry. */
export function derivedStanza(
  kind: OperationKind,
  { seed, actor, now, gibibytes, arguments: parameters }: DerivedStanza,
): OperationStanza {
  const id = derivedIdOf(kind, seed)
  return {
    id,
    kind,
    requestedAt: now.toISOString(),
    deadlineAt: deadlineOf(kind, now, { gibibytes }).toISOString(),
    actor,
    requestId: id,
    ...(parameters === undefined ? {} : { arguments: { ...parameters } }),
  }
}

/** An operation that no request started has its own id as request id. */
export const hasNoRequest = (operation: OperationStanza): boolean => operation.requestId === operation.id
