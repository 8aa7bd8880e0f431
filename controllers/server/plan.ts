/** The server's plan: pure, synchronous, total. Guards in order: an operation that another one replaced, another zone,
 *  an edit without an
 *  operation, deletion, the operation under way, and a server at rest. */
import { isFinal, type OperationKind, stepsOf } from '../../domain/operations.ts'
import type { Action } from '../../kit/reconcile/action.ts'
import { adopt, auditAdopted, auditEdits, SYSTEM_ACTOR, detectEdit } from './direct-edit.ts'
import { changePlan, changePlanFailed } from './change-plan.ts'
import { unchanged, type Decision, toActions, type ReconcileInput, type OperationInput } from './decision.ts'
import { forceRelease } from './recovery/force-release.ts'
import { updateMetadata } from './metadata.ts'
import { migrateLive } from './migration/live.ts'
import { migrateCold } from './migration/cold.ts'
import { followZone } from './migration/new-zone.ts'
import { create, failed, restart, start, stop } from './power/index.ts'
import { rebuild, rebuildFailed } from './rebuild/index.ts'
import { endedByLoss, recover, recoverFailed } from './recovery/index.ts'
import { deleteObject, removal } from './removal.ts'
import { renumberIpv6 } from './renumber.ts'
import { activeOperation } from '../operation/stanza.ts'
import { hasBegun, isDeleting, type Observed, type ServerObject } from './observed.ts'
import { resolve, resolveMigration } from './migration/resolve.ts'
import { idle } from './idle.ts'

const FLOWS: Partial<Record<OperationKind, (input: OperationInput) => Decision>> = {
  'server.create': create,
  'server.start': start,
  'server.stop': stop,
  'server.restart': restart,
  'server.delete': removal,
  'server.metadata': updateMetadata,
  'server.renumber_ipv6': renumberIpv6,
  'server.change_plan': changePlan,
  'server.rebuild': rebuild,
  'server.migrate': migrateLive,
  'server.move': migrateCold,
  'server.settle_migration': resolveMigration,
  'server.recover': recover,
  'server.force_release': forceRelease,
}

/** How a flow that is given up leaves the server, where it is not as after the flows of power. */
const FAILURES: Partial<Record<OperationKind, typeof failed>> = {
  'server.change_plan': changePlanFailed,
  'server.rebuild': rebuildFailed,
  'server.recover': recoverFailed,
}

/** What is to be done about the server now. Edits are audited whatever else happens. */
export function plan(server: ServerObject, observed: Observed, now: Date): readonly Action[] {
  const input: ReconcileInput = { server, observed, now }
  return [...auditEdits(input), ...decide(input)]
}

function decide(input: ReconcileInput): readonly Action[] {
  const { server, observed } = input
  const replaced = replacedOperation(server)
  if (replaced !== undefined) return [replaced]
  const moved = followZone(input)
  if (moved !== undefined && !isDeleting(server)) return toActions(input, moved)
  const edit = detectEdit(server, observed.instance)
  const unbegun = edit === undefined ? undefined : unbegunOperation(input)
  if (unbegun !== undefined) return unbegun
  if (edit !== undefined)
    return [adopt(input, edit.kind, isFollowUp(input, edit.kind) ? SYSTEM_ACTOR : observed.editor)]
  if (isDeleting(server) && server.metadata.deletionTimestamp === undefined) return [deleteObject(server)]
  const operation = activeOperation(server)
  if (operation === undefined) return toActions(input, isDeleting(server) ? removal(input) : idle(input))
  const work: OperationInput = { ...input, operation }
  const flow = FLOWS[operation.kind]
  const decision =
    flow === undefined
      ? unknown(work)
      : inTime(work, hasOldMove(work) ? moveFirst(work) : (endedByLoss(work) ?? flow(work)))
  return [...auditAdopted(input, operation), ...toActions(input, decision)]
}

/** Room is held for a move of an operation before this one. */
const hasOldMove = ({ server, operation, observed: { claims } }: OperationInput): boolean =>
  claims?.target !== undefined &&
  claims.target.operationId !== operation.id &&
  operation.kind !== 'server.settle_migration' &&
  !isDeleting(server)

/** Nothing else begins before the guest is known to be on one node. */
function moveFirst(input: OperationInput): Decision {
  const { outcome: _outcome, error: _error, events: _events, step: _step, ...decision } = resolve(input)
  return { ...decision, step: '', waitFor: 'the move before to be settled', waitSeconds: 5 }
}

/** The start that an ended operation left to be done; nobody asked for it by itself. */
const isFollowUp = (
  {
    server: {
      spec: { operation },
    },
    observed: { requests },
  }: ReconcileInput,
  kind: OperationKind,
): boolean =>
  kind === 'server.start' &&
  !requests.some(({ action }) => action === kind) &&
  (operation?.kind === 'server.rebuild' ||
    (operation?.kind === 'server.change_plan' && operation.arguments?.['start'] === 'true'))

const unknown = (input: OperationInput): Decision => ({
  ...unchanged(input),
  step: 'done',
  outcome: 'failed',
  error: `A server knows no operation ${input.operation.kind}.`,
})

/** Only deletion replaces an operation, and only a creation. */
function replacedOperation({ spec, status }: ServerObject): Action | undefined {
  const progress = status?.operation
  if (progress === undefined || isFinal(progress.status) || progress.id === spec.operation?.id) return undefined
  return { do: 'operation', id: progress.id, step: progress.step, outcome: 'cancelled' }
}

/** Ends the operation that an edit replaces, when no turn has come to it: nothing else would remember it. */
function unbegunOperation(input: ReconcileInput): readonly Action[] | undefined {
  const operation = activeOperation(input.server)
  if (operation === undefined || hasBegun(input.server, operation)) return undefined
  const end: Decision = {
    ...unchanged(input),
    step: stepsOf(operation.kind)[0] ?? 'done',
    outcome: 'cancelled',
    waitFor: 'the edit that replaces the operation',
    waitSeconds: 0,
  }
  return [...auditAdopted(input, operation), ...toActions(input, end)]
}

/** These go on all the same, and leave power as it is. */
const GOES_ON: readonly OperationKind[] = [
  'server.delete',
  'server.force_release',
  'server.metadata',
  'server.renumber_ipv6',
  'server.migrate',
  'server.move',
  'server.settle_migration',
]

/** What is not done at its deadline has failed. */
function inTime(input: OperationInput, decision: Decision): Decision {
  if (decision.outcome !== undefined || input.now.getTime() < Date.parse(input.operation.deadlineAt)) return decision
  if (decision.status?.migration?.state === 'switched') return decision // beyond the point of no return it ends well
  const error = `It was not done in time: still waiting for ${decision.waitFor ?? 'the platform'}.`
  return GOES_ON.includes(input.operation.kind)
    ? { ...decision, outcome: 'failed', error }
    : (FAILURES[input.operation.kind] ?? failed)(input, decision.step ?? 'done', error)
}
