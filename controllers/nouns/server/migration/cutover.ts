/** After the point of no return: the server belongs to the target node, and its remains on the source are removed. */
import type { OperationEvent } from '../../../../kit/reconcile/action.ts'
import type { ServerAction } from '../actions.ts'
import { nodeOf } from '../../../../resources/instance/index.ts'
import type { MigrationProgress } from '../../../../resources/server/index.ts'
import { unchanged, type Decision, type ReconcileInput, type OperationInput } from '../decision.ts'
import { ensureInstance, powerOf, removeInstances } from '../drafts.ts'
import { inState, isUnreachable, type MigrationInput, policyOf } from './input.ts'
import { present } from '../../../kit/operation/decision.ts'
import { hasStarted } from '../power/index.ts'
import { type ServerObject, serverIdOf } from '../observed.ts'
import { removeMigrationKeys, removeUserDataCopy } from './rollback.ts'

/** Makes the target the server's node. */
export function cutOver(input: MigrationInput): Decision {
  const { server, observed, migrationId } = input
  const decision = inState(input, 'switched', stateOnTarget(input))
  const migration = decision.status?.migration
  const action: ServerAction = {
    do: 'effect',
    name: 'switch',
    input: { ...serverIdOf(server, observed), operationId: migrationId },
  }
  return {
    ...decision,
    actions: [action],
    events: cutoverEvents(server, input.targetNode, migration),
    waitSeconds: 0,
    waitFor: 'the next look',
  }
}

/** A live-migrated guest stays started; a newly created one has the state that it reached. */
function stateOnTarget({ target }: MigrationInput): Partial<Decision> {
  if (target === undefined || target.spec.receive !== undefined) return {}
  return target.spec.power === 'running' && hasStarted(target) ? { state: 'started' } : { state: 'stopped' }
}

/** Kind of the event of a move whose downtime exceeded the limit of its policy. */
export const DOWNTIME_EXCEEDED = 'downtime_exceeded'

/** Excess downtime is only reported: it has already happened, so the move does not fail because of it. */
function cutoverEvents(
  server: ServerObject,
  node: string,
  migration: MigrationProgress | undefined,
): readonly OperationEvent[] {
  const downtime = migration?.downtimeMilliseconds ?? 0
  const { downtimeLimitMilliseconds: limit } = policyOf(server)
  const arrived = {
    kind: 'handed_over',
    message: `The server is on node ${node}.`,
    data: { node_id: node, downtime_milliseconds: downtime },
  }
  if (downtime <= limit) return [arrived]
  const message =
    `The guest stood still for ${downtime} ms, longer than the ${limit} ms that the migration policy ` +
    `${server.spec.migrationPolicy} allows.`
  return [
    arrived,
    { kind: DOWNTIME_EXCEEDED, message, data: { downtime_milliseconds: downtime, downtime_limit_milliseconds: limit } },
  ]
}

/** Guards in order: remaining instances, the `receive` order on the target, keys. What an unreachable node still holds,
 *  or one that does not finish before the deadline, is removed later, while the server is idle. */
export function cleanUpSource(input: OperationInput, recorded: MigrationProgress): Decision {
  const { server, observed, now, operation } = input
  const { claims, storage, instance } = observed
  const { sourceNode, targetNode } = recorded
  const decision: Decision = {
    ...unchanged(input),
    step: 'cleaned',
    status: { migration: { ...recorded, state: 'switched' } },
    events: cutoverEvents(server, targetNode, recorded),
  }
  const removals = removeInstances(observed.strayInstances)
  const isLeft = (observed.strayInstances ?? []).some((stray) => !isUnreachable(observed, nodeOf(stray)))
  if (isLeft && now.getTime() < Date.parse(operation.deadlineAt))
    return { ...decision, actions: removals, waitFor: `node ${sourceNode} to release the guest` }
  const marked =
    claims === undefined || storage === undefined || instance === undefined
      ? []
      : present(
          ensureInstance(server, observed, claims, storage, {
            ...powerOf(instance),
            receive: undefined,
            send: undefined,
          }),
        )
  return {
    ...decision,
    actions: [...removals, ...marked, ...removeMigrationSecrets(server, recorded)],
    outcome: 'succeeded',
  }
}

/** Removes keys and user data that only the move needed. */
export const removeMigrationSecrets = (
  server: ServerObject,
  { sourceNode, targetNode }: MigrationProgress,
): readonly ServerAction[] => [
  ...removeMigrationKeys(server, [sourceNode, targetNode]),
  ...removeUserDataCopy(server, sourceNode),
]

/** Removes what is left of a move whose operation was ended after its point of no return. */
export function interruptedCleanUp({ server }: ReconcileInput): readonly ServerAction[] {
  const { migration, operation } = server.status ?? {}
  const wasInterrupted =
    migration?.state === 'switched' && operation?.id === migration.operationId && operation.status === 'failed'
  return wasInterrupted ? removeMigrationSecrets(server, migration) : []
}
