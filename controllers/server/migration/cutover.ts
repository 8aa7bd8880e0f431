/** Beyond the point of no return: the server lives on the other node, and what is left of it where it was goes. */
import type { Action, OperationEvent } from '../../../kit/reconcile/action.ts'
import { nodeOf } from '../../../resources/instance/index.ts'
import type { MigrationProgress } from '../../../resources/server/stored.ts'
import { asBefore, type Decision, type Turn, type Work } from '../decision.ts'
import { ensureInstance, powerOf } from '../drafts.ts'
import { inState, isSilent, type Moving, policyOf } from './input.ts'
import { hasStarted, present } from '../power/index.ts'
import { removeInstances } from '../removal.ts'
import type { ServerObject } from '../observed.ts'
import { forgetKeys, forgetUserData } from './undo.ts'

/** The node that the server came to is its node from now on. */
export function switched(moving: Moving): Decision {
  const {
    server,
    seen: { accountId },
    moveId,
  } = moving
  const decision = inState(moving, 'switched', stateThere(moving))
  const migration = decision.status?.migration
  const action: Action = {
    do: 'effect',
    name: 'switch',
    input: { accountId, serverId: server.metadata.name, operationId: moveId },
  }
  return {
    ...decision,
    actions: [action],
    events: handedOver(server, moving.targetNode, migration),
    waitSeconds: 0,
    waitFor: 'the next look',
  }
}

/** A guest that was sent stays started; one that was made anew is what it became. */
function stateThere({ target }: Moving): Partial<Decision> {
  if (target === undefined || target.spec.receive !== undefined) return {}
  return target.spec.power === 'running' && hasStarted(target) ? { state: 'started' } : { state: 'stopped' }
}

/** Kind of the event of a move whose guest stood still for longer than its policy allows. */
export const DOWNTIME_EXCEEDED = 'downtime_exceeded'

/** A pause longer than the policy allows is said: it has happened, and nothing fails because of it. */
function handedOver(
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

/** Guards in order: instances left, the instance here still marked as received, keys. A node that is silent, or takes
 *  longer than the operation
 *  may, is cleaned by a server at rest. */
export function cleaned(work: Work, written: MigrationProgress): Decision {
  const { server, seen, now, operation } = work
  const { claims, storage, instance } = seen
  const { sourceNode, targetNode } = written
  const decision: Decision = {
    ...asBefore(work),
    step: 'cleaned',
    status: { migration: { ...written, state: 'switched' } },
    events: handedOver(server, targetNode, written),
  }
  const removals = removeInstances(seen.strayInstances)
  const isLeft = (seen.strayInstances ?? []).some((stray) => !isSilent(seen, nodeOf(stray)))
  if (isLeft && now.getTime() < Date.parse(operation.deadlineAt))
    return { ...decision, actions: removals, waitFor: `node ${sourceNode} to let go of the guest` }
  const marked =
    claims === undefined || storage === undefined || instance === undefined
      ? []
      : present(
          ensureInstance(server, seen, claims, storage, { ...powerOf(instance), receive: undefined, send: undefined }),
        )
  return { ...decision, actions: [...removals, ...marked, ...forgetMove(server, written)], outcome: 'succeeded' }
}

/** Keys and user data that only the move needed. */
export const forgetMove = (server: ServerObject, { sourceNode, targetNode }: MigrationProgress): readonly Action[] => [
  ...forgetKeys(server, [sourceNode, targetNode]),
  ...forgetUserData(server, sourceNode),
]

/** What is left of a move whose operation was ended between its point of no return and its end. */
export function leftOfMove({ server }: Turn): readonly Action[] {
  const { migration, operation } = server.status ?? {}
  const isCutShort =
    migration?.state === 'switched' && operation?.id === migration.operationId && operation.status === 'failed'
  return isCutShort ? forgetMove(server, migration) : []
}
