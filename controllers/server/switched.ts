/** Beyond the point of no return: the server lives on the other node, and what is left of it where it was goes. */
import type { Action, OperationEvent } from '../../kit/reconcile/action.ts'
import type { MigrationProgress } from '../../resources/server.ts'
import { asBefore, type Decision, type Work } from './decision.ts'
import { ensureInstance, powerOf } from './drafts.ts'
import { inState, isSilent, type Moving, nodeOf } from './moving.ts'
import { hasStarted, present } from './power.ts'
import { removeInstances } from './removal.ts'
import { forgetKeys, forgetUserData } from './undo.ts'

/** The node that the server came to is its node from now on. */
export function switched(moving: Moving): Decision {
  const { server, seen: { accountId }, moveId } = moving
  const decision = inState(moving, 'switched', stateThere(moving))
  const migration = decision.status?.migration
  const action: Action = { do: 'effect', name: 'switch', input: { accountId, serverId: server.metadata.name, operationId: moveId } }
  return { ...decision, actions: [action], events: handedOver(moving.targetNode, migration), waitSeconds: 0, waitFor: 'the next look' }
}

/** A guest that was sent stays started; one that was made anew is what it became. */
function stateThere({ target }: Moving): Partial<Decision> {
  if (target === undefined || target.spec.receive !== undefined) return {}
  return target.spec.power === 'running' && hasStarted(target) ? { state: 'started' } : { state: 'stopped' }
}

const handedOver = (node: string, migration: MigrationProgress | undefined): readonly OperationEvent[] => {
  const downtime = migration?.downtimeMilliseconds ?? 0
  return [{ kind: 'handed_over', message: `The server is on node ${node}.`, data: { node_id: node, downtime_milliseconds: downtime } }]
}

/** Guards in order: instances left, the instance here still marked as received, keys. A node that is silent is cleaned when it is back. */
export function cleaned(work: Work, written: MigrationProgress): Decision {
  const { server, seen } = work
  const { claims, storage, instance } = seen
  const { sourceNode, targetNode } = written
  const decision: Decision = { ...asBefore(work), step: 'cleaned', status: { migration: { ...written, state: 'switched' } }, events: handedOver(targetNode, written) }
  const removals = removeInstances(seen.strayInstances)
  const isLeft = (seen.strayInstances ?? []).some((stray) => !isSilent(seen, nodeOf(stray)))
  if (isLeft) return { ...decision, actions: removals, waitFor: `node ${sourceNode} to let go of the guest` }
  const marked = claims === undefined || storage === undefined || instance === undefined
    ? [] : present(ensureInstance(server, seen, claims, storage, { ...powerOf(instance), receive: undefined, send: undefined }))
  return { ...decision, actions: [...removals, ...marked, ...forgetKeys(server, [sourceNode, targetNode]), ...forgetUserData(server, sourceNode)], outcome: 'succeeded' }
}
