/** The server's plan: pure, synchronous, total. Guards in order: an operation that another one replaced, another zone,
 *  an edit without an
 *  operation, deletion, the operation under way, and a server at rest. */
import { isFinal, type OperationKind, stepsOf } from '../../domain/operations.ts'
import type { Action } from '../../kit/reconcile/action.ts'
import { adopt, auditAdopted, auditEdits, SYSTEM_ACTOR, unaskedEdit } from './direct-edit.ts'
import { changePlan, changePlanFailed } from './change-plan.ts'
import { asBefore, type Decision, toActions, type Turn, type Work } from './decision.ts'
import { forceRelease } from './recovery/force-release.ts'
import { switchMetadata } from './metadata.ts'
import { migrate } from './migration/live.ts'
import { move } from './migration/cold.ts'
import { newZone } from './migration/new-zone.ts'
import { create, failed, restart, start, stop } from './power/index.ts'
import { rebuild, rebuildFailed } from './rebuild/index.ts'
import { endedByLoss, recover, recoverFailed } from './recovery/index.ts'
import { deleteObject, removal } from './removal.ts'
import { renumberIpv6 } from './renumber.ts'
import { activeOperation, hasBegun, isDeleting, type Seen, type ServerObject } from './observed.ts'
import { settle, settleMigration } from './migration/resolve.ts'
import { settled } from './idle.ts'

const FLOWS: Partial<Record<OperationKind, (work: Work) => Decision>> = {
  'server.create': create,
  'server.start': start,
  'server.stop': stop,
  'server.restart': restart,
  'server.delete': removal,
  'server.metadata': switchMetadata,
  'server.renumber_ipv6': renumberIpv6,
  'server.change_plan': changePlan,
  'server.rebuild': rebuild,
  'server.migrate': migrate,
  'server.move': move,
  'server.settle_migration': settleMigration,
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
export function plan(server: ServerObject, seen: Seen, now: Date): readonly Action[] {
  const turn: Turn = { server, seen, now }
  return [...auditEdits(turn), ...decide(turn)]
}

function decide(turn: Turn): readonly Action[] {
  const { server, seen } = turn
  const replaced = replacedOperation(server)
  if (replaced !== undefined) return [replaced]
  const moved = newZone(turn)
  if (moved !== undefined && !isDeleting(server)) return toActions(turn, moved)
  const edit = unaskedEdit(server, seen.instance)
  const unbegun = edit === undefined ? undefined : unbegunOperation(turn)
  if (unbegun !== undefined) return unbegun
  if (edit !== undefined) return [adopt(turn, edit.kind, isFollowUp(turn, edit.kind) ? SYSTEM_ACTOR : seen.editor)]
  if (isDeleting(server) && server.metadata.deletionTimestamp === undefined) return [deleteObject(server)]
  const operation = activeOperation(server)
  if (operation === undefined) return toActions(turn, isDeleting(server) ? removal(turn) : settled(turn))
  const work: Work = { ...turn, operation }
  const flow = FLOWS[operation.kind]
  const decision =
    flow === undefined
      ? unknown(work)
      : inTime(work, hasOldMove(work) ? moveFirst(work) : (endedByLoss(work) ?? flow(work)))
  return [...auditAdopted(turn, operation), ...toActions(turn, decision)]
}

/** Room is held for a move of an operation before this one. */
const hasOldMove = ({ server, operation, seen: { claims } }: Work): boolean =>
  claims?.target !== undefined &&
  claims.target.operationId !== operation.id &&
  operation.kind !== 'server.settle_migration' &&
  !isDeleting(server)

/** Nothing else begins before the guest is known to be on one node. */
function moveFirst(work: Work): Decision {
  const { outcome: _outcome, error: _error, events: _events, step: _step, ...decision } = settle(work)
  return { ...decision, step: '', waitFor: 'the move before to be settled', waitSeconds: 5 }
}

/** The start that an ended operation left to be done; nobody asked for it by itself. */
const isFollowUp = (
  {
    server: {
      spec: { operation },
    },
    seen: { requests },
  }: Turn,
  kind: OperationKind,
): boolean =>
  kind === 'server.start' &&
  !requests.some(({ action }) => action === kind) &&
  (operation?.kind === 'server.rebuild' ||
    (operation?.kind === 'server.change_plan' && operation.arguments?.['start'] === 'true'))

const unknown = (work: Work): Decision => ({
  ...asBefore(work),
  step: 'done',
  outcome: 'failed',
  error: `A server knows no operation ${work.operation.kind}.`,
})

/** Only deletion replaces an operation, and only a creation. */
function replacedOperation({ spec, status }: ServerObject): Action | undefined {
  const progress = status?.operation
  if (progress === undefined || isFinal(progress.status) || progress.id === spec.operation?.id) return undefined
  return { do: 'operation', id: progress.id, step: progress.step, outcome: 'cancelled' }
}

/** Ends the operation that an edit replaces, when no turn has come to it: nothing else would remember it. */
function unbegunOperation(turn: Turn): readonly Action[] | undefined {
  const operation = activeOperation(turn.server)
  if (operation === undefined || hasBegun(turn.server, operation)) return undefined
  const end: Decision = {
    ...asBefore(turn),
    step: stepsOf(operation.kind)[0] ?? 'done',
    outcome: 'cancelled',
    waitFor: 'the edit that replaces the operation',
    waitSeconds: 0,
  }
  return [...auditAdopted(turn, operation), ...toActions(turn, end)]
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
function inTime(work: Work, decision: Decision): Decision {
  if (decision.outcome !== undefined || work.now.getTime() < Date.parse(work.operation.deadlineAt)) return decision
  if (decision.status?.migration?.state === 'switched') return decision // beyond the point of no return it ends well
  const error = `It was not done in time: still waiting for ${decision.waitFor ?? 'the platform'}.`
  return GOES_ON.includes(work.operation.kind)
    ? { ...decision, outcome: 'failed', error }
    : (FAILURES[work.operation.kind] ?? failed)(work, decision.step ?? 'done', error)
}
