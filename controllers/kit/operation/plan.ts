/** How operations run, the same for every noun that has them. Guards in order: an operation that another one replaced,
 *  the noun's own guard, an edit without an operation, the operation under way, and an idle object. A noun defines
 *  flows and rules; it never reads stanzas, deadlines or the audit log. Pure. */
import { type OperationKind, stepsOf } from '../../../domain/operations.ts'
import type { KubeObject } from '../../../kit/kube/object.ts'
import type { Action, ConditionDraft } from '../../../kit/reconcile/action.ts'
import type { OperationStanza } from '../../../resources/kit/shapes.ts'
import { type AuditAction, auditAction, auditedAs } from '../audit.ts'
import type { PlainAction } from '../effects.ts'
import type { OperationDecision } from './decision.ts'
import { type DirectEdit, hasFailed, isOfPlatform, secondsToRetry, startFor, wasRefused } from './direct-edit.ts'
import { activeOperation, hasBegun, hasNoRequest, isPastDeadline, replacedOperation } from './stanza.ts'
import type { Operable } from '../../../resources/operation/index.ts'

/** The input of a decision while an operation is under way. */
export type During<Input> = Input & { readonly operation: OperationStanza }

/** One flow for each kind of operation. A kind without a flow fails at once. */
export type Flows<Input, Decision> = { readonly [Kind in OperationKind]?: (input: During<Input>) => Decision }

/** A noun with operations: `Input` is what its rules read, `Action` what its plan may decide. */
export interface OperatedNoun<Root, Observed, Input, Decision, Action> {
  /** Used in errors, for people: `A server`. */
  readonly label: string
  readonly flows: Flows<Input, Decision>
  inputOf(root: Root, observed: Observed, now: Date): Input
  /** Decides nothing: the status stays as it is. */
  unchanged(input: Input): Decision
  /** Actions that come before everything, also before an operation that was replaced; undefined when there are none. */
  first?(input: Input): readonly Action[] | undefined
  /** Actions that are added to every decision. */
  always?(input: Input): readonly Action[]
  /** Actions that come before edits and operations; undefined when there are none. */
  guard?(input: Input): readonly Action[] | undefined
  /** The edit that has no operation, and its actor; undefined when spec and operations agree. */
  detectEdit(input: Input): (DirectEdit & { readonly actor: string }) | undefined
  /** Decides while no operation is under way. */
  idle(input: Input): Decision
  /** Decides instead of the flow; undefined when the flow may continue. */
  insteadOfFlow?(input: During<Input>): Decision | undefined
  /** Decides when the operation has passed its deadline with this decision, which does not end it. The operation fails
   *  when this is absent. */
  overdue?(input: During<Input>, decision: Decision, error: string): Decision
  /** Which operations a deletion by kubectl ends at once, as a deletion by REST does: `all`, or those for which this is
   *  true. The deletion waits for the end of any other: until then the object is treated as if nobody had deleted
   *  it. */
  readonly endedByDeletion: 'all' | ((operation: OperationStanza, root: Root, observed: Observed) => boolean)
  /** The action that the audit log names when the operation starts; undefined for one that is not audited here. When
   *  this is absent, operations without a request are audited by their kind; the request of any other has written its
   *  entry. */
  readonly auditedAs?: (operation: OperationStanza) => string | undefined
  toActions(input: Input, decision: Decision): readonly Action[]
}

/** Synchronous and total. */
export interface OperationPlan<Root, Observed, Action> {
  (root: Root, observed: Observed, now: Date): readonly (Action | PlainAction | AuditAction)[]
  /** The kinds of operations that the plan has flows for. */
  readonly kinds: readonly OperationKind[]
}

/** The plan of a noun with operations. */
export function planOperations<
  Root extends KubeObject & Operable,
  Observed,
  Input extends object,
  Decision extends OperationDecision<Action>,
  Action,
>(noun: OperatedNoun<Root, Observed, Input, Decision, Action>): OperationPlan<Root, Observed, Action> {
  const plan = (root: Root, observed: Observed, now: Date) => {
    const awaited = awaitedByDeletion(noun, root, observed)
    const view = awaited === undefined ? root : withoutDeletion(root)
    const input = noun.inputOf(view, observed, now)
    const actions = noun.first?.(input) ?? [...(noun.always?.(input) ?? []), ...decide(noun, view, input, now)]
    const condition = waitingCondition(root, awaited)
    return condition === undefined
      ? actions
      : actions.map((action) => (isStatus(action) ? withCondition(action, condition) : action))
  }
  return Object.assign(plan, { kinds: Object.keys(noun.flows) as OperationKind[] }) // flows are keyed by kind
}

export const DELETION_WAITS = 'DeletionWaits'

/** The operation that the deletion of the object waits for; undefined when it waits for none. A protected object is not
 *  deleted, whatever it waits for. */
function awaitedByDeletion<Root extends KubeObject & Operable, Observed>(
  { endedByDeletion }: Pick<OperatedNoun<Root, Observed, never, never, never>, 'endedByDeletion'>,
  root: Root,
  observed: Observed,
): OperationStanza | undefined {
  const { isProtected } = root.spec as { readonly isProtected?: boolean } // of kinds that have it
  if (root.metadata.deletionTimestamp === undefined || endedByDeletion === 'all' || isProtected === true)
    return undefined
  const operation = activeOperation(root)
  return operation === undefined || isDeletion(operation) || endedByDeletion(operation, root, observed)
    ? undefined
    : operation
}

const DELETING_ACTIONS: readonly (string | undefined)[] = ['delete', 'release']
const isDeletion = ({ kind, arguments: parameters }: OperationStanza): boolean =>
  kind.endsWith('.delete') || kind === 'server.force_release' || DELETING_ACTIONS.includes(parameters?.['action'])

function withoutDeletion<Root extends KubeObject>(root: Root): Root {
  const { deletionTimestamp: _, ...metadata } = root.metadata
  return { ...root, metadata }
}

/** The condition that `kubectl describe` shows for a deletion that waits, or has waited. */
function waitingCondition(
  root: KubeObject & Operable,
  awaited: OperationStanza | undefined,
): ConditionDraft | undefined {
  if (awaited !== undefined) {
    const message = `It is deleted when its operation ${awaited.kind} (${awaited.id}) has ended.`
    return { type: DELETION_WAITS, status: 'True', reason: 'OperationInProgress', message }
  }
  // Every kind has conditions.
  const { conditions = [] } = (root.status ?? {}) as { readonly conditions?: readonly ConditionDraft[] }
  return conditions.some(({ type, status }) => type === DELETION_WAITS && status === 'True')
    ? { type: DELETION_WAITS, status: 'False', reason: 'OperationEnded', message: '' }
    : undefined
}

const isStatus = (action: unknown): action is StatusAction =>
  typeof action === 'object' && action !== null && 'do' in action && action.do === 'status'
type StatusAction = Extract<Action, { readonly do: 'status' }>
const withCondition = (action: StatusAction, condition: ConditionDraft): StatusAction => ({
  ...action,
  conditions: [...(action.conditions ?? []), condition],
})

function decide<Root extends KubeObject & Operable, Input extends object, Decision extends OperationDecision<A>, A>(
  noun: OperatedNoun<Root, never, Input, Decision, A>,
  root: Root,
  input: Input,
  now: Date,
): readonly (A | PlainAction | AuditAction)[] {
  const replaced = replacedOperation(root)
  if (replaced !== undefined) return [{ do: 'operation', id: replaced.id, step: replaced.step, outcome: 'cancelled' }]
  const guarded = noun.guard?.(input)
  if (guarded !== undefined) return guarded
  const edit = noun.detectEdit(input)
  const operation = activeOperation(root)
  if (operation === undefined) {
    const seconds = edit === undefined ? undefined : secondsToStart(root, edit, now)
    if (edit !== undefined && seconds === 0) return [startFor(root, edit, { actor: edit.actor, now })]
    const actions = noun.toActions(input, noun.idle(input))
    return seconds === undefined ? actions : [...actions, { do: 'wait', seconds, for: 'another attempt' }]
  }
  if (edit !== undefined && hasBegun(root, operation)) return [startFor(root, edit, { actor: edit.actor, now })]
  const decision =
    edit === undefined ? decideFlow(noun, { ...input, operation }, now) : cancelUnbegun(noun, input, operation)
  return [...auditStart(noun, root, operation), ...noun.toActions(input, decision)]
}

/** Seconds until the edit gets its operation; undefined when it gets none. What the platform requires has its own times
 *  for another attempt. An edit of a person that was refused waits for another edit or a request: it would be refused
 *  again, and every attempt is an operation and an audit entry. One that ran out of time is tried ever more rarely. */
function secondsToStart(root: KubeObject & Operable, edit: DirectEdit & { readonly actor: string }, now: Date) {
  if (isOfPlatform(edit) || !hasFailed(root, edit)) return 0
  return wasRefused(root) ? undefined : secondsToRetry(root, now)
}

function decideFlow<Input extends object, Decision extends OperationDecision<A>, A>(
  noun: OperatedNoun<never, never, Input, Decision, A>,
  input: During<Input>,
  now: Date,
): Decision {
  const { operation } = input
  const flow = noun.flows[operation.kind]
  if (flow === undefined)
    return {
      ...noun.unchanged(input),
      step: 'done',
      outcome: 'failed',
      error: `${noun.label} knows no operation ${operation.kind}.`,
    }
  const decision = noun.insteadOfFlow?.(input) ?? flow(input)
  if (decision.outcome !== undefined || !isPastDeadline(operation, now)) return decision
  const error = `It was not done in time: still waiting for ${decision.waitFor ?? 'the platform'}.`
  return noun.overdue?.(input, decision, error) ?? { ...decision, outcome: 'failed', error }
}

/** Ends an operation that an edit replaces before it has started: nothing else would record it. */
const cancelUnbegun = <Input, Decision extends OperationDecision<A>, A>(
  noun: OperatedNoun<never, never, Input, Decision, A>,
  input: Input,
  { kind }: OperationStanza,
): Decision => ({
  ...noun.unchanged(input),
  step: stepsOf(kind)[0] ?? 'done',
  outcome: 'cancelled',
  waitFor: 'the edit that replaces the operation',
  waitSeconds: 0,
})

/** Writes the audit entry of an operation, once, before it starts. */
function auditStart(
  noun: Pick<OperatedNoun<never, never, never, never, never>, 'auditedAs'>,
  root: Operable,
  operation: OperationStanza,
): readonly AuditAction[] {
  if (hasBegun(root, operation)) return []
  const { actor, requestId, kind } = operation
  const ofKind = hasNoRequest(operation) ? auditedAs(kind) : undefined
  const action = noun.auditedAs === undefined ? ofKind : noun.auditedAs(operation)
  return action === undefined ? [] : [auditAction({ action, actor, requestId })]
}
