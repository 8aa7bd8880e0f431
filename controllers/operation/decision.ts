/** What a turn decides whose root has operations, whatever its kind: what shall be done, how far the operation is, and
 *  what is waited for. */
import type { Action, OperationEvent, OperationOutcome } from '../../kit/reconcile/action.ts'

export interface OperationDecision {
  readonly actions?: readonly Action[]
  /** Of the operation under way: the first condition that does not hold. */
  readonly step?: string
  readonly outcome?: OperationOutcome
  /** For people; with `failed`. */
  readonly error?: string
  readonly events?: readonly OperationEvent[]
  /** What the turn waits for, as words that complete "waited for". */
  readonly waitFor?: string
  readonly waitSeconds?: number
}
