/** The operation of a root object, as the machinery sees it: the stanza `spec.operation` that requested it, its mirror
 *  `status.operation`, and the port through which its record is stored. */
import { isFinal, type OperationStatus } from '../../domain/operations.ts'
import type { KubeObject } from '../kube/object.ts'
import type { OperationAction } from './action.ts'

/** The fields of `spec.operation` that the machinery reads. */
export interface Stanza {
  readonly id: string
  readonly kind: string
  /** RFC 3339. */
  readonly requestedAt?: string
  readonly deadlineAt: string
  /** Of the trace that it belongs to. */
  readonly traceparent?: string
}

/** The fields of `status.operation`, the mirror, that the machinery reads. */
export interface Progress {
  readonly id: string
  readonly kind: string
  readonly status: OperationStatus
  readonly step: string
  readonly error: string
  /** Who requested it. */
  readonly actor: string
}

/** Stores the records of operations. Each call is idempotent: it may be repeated after a crash anywhere inside it. */
export interface Operations {
  /** Brings the Operation object to this step or outcome (creating it when it is missing; events appended once, the
   *  newest kept), then, when it has ended, writes it to history. Returns the mirror for `status.operation` of the
   *  root. The mirror is written after this, so an operation that looks ended on its root is ended everywhere. */
  record(root: KubeObject, action: OperationAction, now: Date): Promise<Progress>
}

/** The requested operation, ended or not. */
export const stanzaOf = (root: KubeObject): Stanza | undefined =>
  (root.spec as { operation?: Stanza } | undefined)?.operation // every root with operations has this field
/** The progress of the last reconciled operation. */
export const progressOf = (root: KubeObject): Progress | undefined =>
  (root.status as { operation?: Progress } | undefined)?.operation // as above

/** The requested operation while it has not ended; undefined when there is none. */
export function activeOperation(root: KubeObject): Stanza | undefined {
  const stanza = stanzaOf(root)
  const progress = progressOf(root)
  return stanza === undefined || (progress?.id === stanza.id && isFinal(progress.status)) ? undefined : stanza
}

/** Whether the root has an operation that must have ended by now. */
export function isOverdue(root: KubeObject, now: Date): boolean {
  const active = activeOperation(root)
  return active !== undefined && now.getTime() >= Date.parse(active.deadlineAt)
}
