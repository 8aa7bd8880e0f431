/** The decision about an object that has operations, whatever its kind: what to do, how far the operation is, and what
 *  it waits for. Flows are lists of rules; the first rule that decides is the current step, so that a crash anywhere
 *  loses nothing. */
import { defined } from '../../../domain/defined.ts'
import type { OperationKind, StepOf } from '../../../domain/operations.ts'
import type { Action, OperationEvent, OperationOutcome } from '../../../kit/reconcile/action.ts'
import type { OperationStanza } from '../../../resources/kit/shapes.ts'
import type { PlainAction } from '../effects.ts'
import { activeOperation } from './stanza.ts'
import type { Operable } from '../../../resources/operation/index.ts'

export interface OperationDecision<A = Action, Kind extends OperationKind = OperationKind> {
  readonly actions?: readonly A[]
  /** The step of the operation under way: the first condition that does not hold. */
  readonly step?: StepOf<Kind> | undefined
  readonly outcome?: OperationOutcome
  /** For people; present with `failed`. */
  readonly error?: string
  readonly events?: readonly OperationEvent[]
  /** RFC 3339: when the operation started, if that was before this decision. */
  readonly startedAt?: string
  /** What it waits for, in words that complete "waiting for". */
  readonly waitFor?: string
  readonly waitSeconds?: number
}

/** Decides, or leaves the decision to the next rule. */
export type Rule<Input, Decision> = (input: Input) => Decision | undefined

/** The decision of the first rule that decides. The last rule of a flow always decides. */
export function firstDecision<Input extends { readonly operation: OperationStanza }, Decision>(
  input: Input,
  rules: readonly Rule<Input, Decision>[],
): Decision {
  for (const rule of rules) {
    const decision = rule(input)
    if (decision !== undefined) return decision
  }
  throw new Error(`no rule decides ${input.operation.kind}`)
}

/** The value as a list: empty when there is none. */
export const present = <T>(value: T | undefined): readonly T[] => (value === undefined ? [] : [value])

const TEXT_LENGTH_MAXIMUM = 1_024

/** The text, cut to the length that the stored kinds accept. */
export const truncated = (text: string): string =>
  text.length <= TEXT_LENGTH_MAXIMUM ? text : `${text.slice(0, TEXT_LENGTH_MAXIMUM - 1)}…`

/** The actions that move the operation under way on; none when there is none. */
export function operationActions(
  root: Operable,
  { step = 'done', outcome, error, events, startedAt }: OperationDecision<unknown>,
): readonly PlainAction[] {
  const operation = activeOperation(root)
  if (operation === undefined) return []
  return [
    {
      do: 'operation',
      id: operation.id,
      step,
      ...defined({ outcome }),
      ...(error === undefined ? {} : { error: truncated(error) }),
      ...defined({ events, startedAt }),
    },
  ]
}

/** How long to wait, and for what; nothing when only a change can help. */
export const waitActions = ({
  waitSeconds,
  waitFor = 'a change',
}: OperationDecision<unknown>): readonly PlainAction[] =>
  waitSeconds === undefined ? [] : [{ do: 'wait', seconds: waitSeconds, for: waitFor }]
