/** The stanza of an operation on whatever carries one: which is under way, and how the platform asks for one by itself.
 *  Pure. */
import { createHash } from 'node:crypto'
import { deadlineOf, isFinal, type OperationKind } from '../../domain/operations.ts'
import type { Operable } from '../../resources/operation/index.ts'
import type { OperationProgress, OperationStanza } from '../../resources/shapes.ts'

/** The operation under way; undefined when there is none or it has ended. */
export function activeOperation({ spec, status }: Operable): OperationStanza | undefined {
  const stanza = spec.operation
  const progress = status?.operation
  if (stanza === undefined) return undefined
  return progress?.id === stanza.id && isFinal(progress.status) ? undefined : stanza
}

/** The progress of an operation that another one replaced before it had ended. */
export function replacedProgress({ spec, status }: Operable): OperationProgress | undefined {
  const progress = status?.operation
  return progress === undefined || isFinal(progress.status) || progress.id === spec.operation?.id ? undefined : progress
}

/** A stanza that no request asked for: its own id is its request id, which tells its reconciler to write the audit
 *  entry. `seed` says
 *  what makes it one of a kind; trying again with the same seed is the same operation. */
export function derivedStanza(
  kind: OperationKind,
  {
    seed,
    actor,
    now,
    gibibytes,
  }: { readonly seed: string; readonly actor: string; readonly now: Date; readonly gibibytes?: number },
): OperationStanza {
  const id = derivedId(`${seed}/${kind}`)
  return {
    id,
    kind,
    requestedAt: now.toISOString(),
    deadlineAt: deadlineOf(kind, now, { gibibytes }).toISOString(),
    actor,
    requestId: id,
  }
}

/** An operation that no request asked for carries its own id as request id. */
export const hasNoRequest = (operation: OperationStanza): boolean => operation.requestId === operation.id

/** A version 8 UUID (RFC 9562) made from a text. */
export function derivedId(text: string): string {
  const hex = createHash('sha256').update(text).digest('hex')
  const variant = ((Number.parseInt(hex.slice(16, 17), 16) & 0x3) | 0x8).toString(16)
  return `${hex.slice(0, 8)}-${hex.slice(8, 12)}-8${hex.slice(13, 16)}-${variant}${hex.slice(17, 20)}-${hex.slice(20, 32)}`
}
