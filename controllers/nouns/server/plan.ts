/** The server's plan: pure, synchronous, total. `controllers/kit/operation/plan.ts` has what is the same for every noun
 *  with operations; here are the flows of a server, and what comes before them. */
import type { OperationKind } from '../../../domain/operations.ts'
import { isEdit } from '../../../db/request/index.ts'
import { auditRequests, type DirectEdit, SYSTEM_ACTOR } from '../../kit/operation/direct-edit.ts'
import { type Flows, planOperations } from '../../kit/operation/plan.ts'
import type { ServerAction } from './actions.ts'
import { changePlan, changePlanFailed } from './change-plan.ts'
import { type Decision, type OperationInput, type ReconcileInput, toActions, unchanged } from './decision.ts'
import { detectEdit, isEndedByDeletion } from './direct-edit.ts'
import { endedByForgetting } from './forgotten.ts'
import { idle } from './idle.ts'
import { changeInterfaces } from './interfaces.ts'
import { updateMetadata } from './metadata.ts'
import { migrateCold } from './migration/cold.ts'
import { migrateLive } from './migration/live.ts'
import { followZone } from './migration/new-zone.ts'
import { resolve, resolveMigration } from './migration/resolve.ts'
import { isDeleting, type Observed, type ServerObject } from './observed.ts'
import { create, failed, restart, start, stop } from './power/index.ts'
import { rebuild, rebuildOverdue } from './rebuild/index.ts'
import { forceRelease } from './recovery/force-release.ts'
import { endedByLoss, recover, recoverFailed } from './recovery/index.ts'
import { deleteObject, removal } from './removal.ts'
import { renumberIpv6 } from './renumber.ts'
import { updateFirewall } from './firewall.ts'

const FLOWS: Flows<ReconcileInput, Decision> = {
  'server.create': create,
  'server.start': start,
  'server.stop': stop,
  'server.restart': restart,
  'server.delete': removal,
  'server.metadata': updateMetadata,
  'server.firewall': updateFirewall,
  'server.attach_network': changeInterfaces,
  'server.detach_network': changeInterfaces,
  'server.renumber_ipv6': renumberIpv6,
  'server.change_plan': changePlan,
  'server.rebuild': rebuild,
  'server.migrate': migrateLive,
  'server.move': migrateCold,
  'server.settle_migration': resolveMigration,
  'server.recover': recover,
  'server.force_release': forceRelease,
}

/** How a failed flow leaves the server, where that differs from the power flows. */
const FAILURES: { readonly [Kind in OperationKind]?: typeof failed } = {
  'server.change_plan': changePlanFailed,
  'server.recover': recoverFailed,
}

/** Kinds whose last decision still applies when they fail at their deadline: power stays as it is. */
const GOES_ON: readonly OperationKind[] = [
  'server.delete',
  'server.force_release',
  'server.metadata',
  'server.firewall',
  'server.attach_network',
  'server.detach_network',
  'server.renumber_ipv6',
  'server.migrate',
  'server.move',
  'server.settle_migration',
]

/** What to do about the server now. Edits are audited whatever the decision. */
export const plan = planOperations<ServerObject, Observed, ReconcileInput, Decision, ServerAction>({
  label: 'A server',
  endedByDeletion: isEndedByDeletion,
  flows: FLOWS,
  inputOf: (server, observed, now) => ({ server, observed, now }),
  unchanged,
  always: ({ server, observed }) => auditRequests(server, observed.requests.filter(isEdit)),
  guard,
  detectEdit(input) {
    const edit = detectEdit(input.server, input.observed)
    return edit && { ...edit, actor: isFollowUp(input, edit) ? SYSTEM_ACTOR : input.observed.editor }
  },
  idle: (input) => (isDeleting(input.server) ? removal(input) : idle(input)),
  insteadOfFlow: (input) =>
    endedByForgetting(input) ?? (hasEarlierMigration(input) ? resolveFirst(input) : endedByLoss(input)),
  overdue,
  toActions,
})

function guard(input: ReconcileInput): readonly ServerAction[] | undefined {
  const { server } = input
  if (isDeleting(server)) return server.metadata.deletionTimestamp === undefined ? [deleteObject(server)] : undefined
  const moved = followZone(input)
  return moved && toActions(input, moved)
}

/** Room is still reserved for the migration of an earlier operation. */
const hasEarlierMigration = ({ server, operation, observed: { claims } }: OperationInput): boolean =>
  claims?.target !== undefined &&
  claims.target.operationId !== operation.id &&
  operation.kind !== 'server.settle_migration' &&
  !isDeleting(server)

/** Nothing else starts before the guest is known to be on one node. */
function resolveFirst(input: OperationInput): Decision {
  const { outcome: _outcome, error: _error, events: _events, step: _step, ...decision } = resolve(input)
  return { ...decision, waitFor: 'the move before to be settled', waitSeconds: 5 }
}

/** The start that an ended operation left to be done; nobody requested it separately. */
const isFollowUp = ({ server: { spec }, observed: { requests } }: ReconcileInput, { kind }: DirectEdit): boolean =>
  kind === 'server.start' &&
  !requests.some(({ action }) => action === kind) &&
  (spec.operation?.kind === 'server.rebuild' ||
    (spec.operation?.kind === 'server.change_plan' && spec.operation.arguments?.['start'] === 'true'))

function overdue(input: OperationInput, decision: Decision, error: string): Decision {
  if (decision.status?.migration?.state === 'switched') return decision // after the cutover it still succeeds
  const { kind } = input.operation
  if (kind === 'server.rebuild') return rebuildOverdue(input, decision, error)
  return GOES_ON.includes(kind)
    ? { ...decision, outcome: 'failed', error }
    : (FAILURES[kind] ?? failed)(input, decision.step ?? 'done', error)
}
