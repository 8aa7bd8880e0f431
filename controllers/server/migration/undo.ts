/** The end of a move that does not come about: the guest is known to go on where it was, or is made to, and what the
 *  other node holds is
 *  given back. Nothing is undone before the sender has said that the guest goes on there. */
import { isCancelled } from '../../../domain/operations.ts'
import { Secret } from '../../../kit/kube/object.ts'
import type { Action } from '../../../kit/reconcile/action.ts'
import { Instance } from '../../../resources/instance/index.ts'
import { asBefore, type Decision, type Work } from '../decision.ts'
import { ensureInstance, instanceKey, madeFor, moveKeyKey, powerOf, userDataKey } from '../drafts.ts'
import { inState, isFenced, isSilent, type Moving, modeOf, reasonToEnd, shallRun, sourceWord } from './input.ts'
import { nextIncarnation, present } from '../power/index.ts'
import type { ServerObject } from '../observed.ts'

/** Guards in order: not written, sender silent or busy, receiver there, cold instead, guest to be brought back, all
 *  done. */
export function undo(moving: Moving, reason: string): Decision {
  const { server, seen, claims, storage, source, target, sourceNode, targetNode, written } = moving
  const why = written.state === 'aborting' && written.detail !== '' ? written.detail : reason
  const decision = inState(moving, 'aborting', {
    reason: why,
    events: [{ kind: 'undoing', message: `The move is undone: ${why}` }],
  })
  if (written.state !== 'aborting')
    return { ...decision, actions: cancelSend(moving), waitSeconds: 0, waitFor: 'the next look' }

  const word = sourceWord(moving)
  if (word === 'sending')
    return {
      ...decision,
      actions: cancelSend(moving),
      waitFor: `node ${sourceNode} to say that the guest goes on there`,
    }
  const isSafe = isFenced(seen, targetNode) || ((word === 'stays' || word === 'ended') && isSilent(seen, targetNode))
  if (target !== undefined && !isSafe)
    return { ...decision, actions: removeTarget(moving), waitFor: `node ${targetNode} to let go of the guest` }
  if (mayGoCold(moving))
    return inState(moving, 'detached', {
      events: [{ kind: 'cold_fallback', message: `The server is stopped and moved: ${why}` }],
      waitSeconds: 0,
      waitFor: 'the next look',
    })

  if (
    source === undefined ||
    ((source.status?.state === 'handed_over' || isStoppedForMove(moving)) && madeFor(source) !== moving.operation.id)
  ) {
    const isRunning = shallRun(moving)
    const power = {
      power: isRunning ? 'running' : 'stopped',
      incarnation: isRunning ? nextIncarnation(moving) : (server.status?.incarnation ?? 0),
      operationId: moving.operation.id,
    } as const
    return {
      ...decision,
      state: isRunning ? 'starting' : 'stopped',
      actions: present(ensureInstance(server, seen, claims, storage, power)),
      waitFor: `node ${sourceNode} to take the server back`,
    }
  }
  const kept = present(
    ensureInstance(server, seen, claims, storage, { ...powerOf(source), send: undefined, receive: undefined }),
  )
  const held: Action = {
    do: 'effect',
    name: 'release',
    input: { accountId: seen.accountId, serverId: server.metadata.name, operationId: moving.moveId },
  }
  const end = ended(moving, why)
  return {
    ...decision,
    ...end,
    state: decision.state,
    actions: [
      ...removeTarget(moving),
      ...kept,
      ...forgetKeys(server, [sourceNode, targetNode]),
      ...forgetUserData(server, targetNode),
      held,
    ],
    events: [...(decision.events ?? []), ...(end.events ?? [])],
  }
}

/** What the other node has of the server goes; free when it is going. */
export const removeTarget = ({ server, target, targetNode }: Moving): readonly Action[] =>
  target === undefined || target.metadata.deletionTimestamp !== undefined
    ? []
    : [{ do: 'remove', type: Instance, key: instanceKey(server, targetNode) }]

/** The sender is told to stop sending, where it was told to send. */
function cancelSend(moving: Moving): readonly Action[] {
  const { server, seen, claims, storage, source } = moving
  const send = source?.spec.send
  if (source === undefined || send === undefined || send.isCancelled || sourceWord(moving) !== 'sending') return []
  return present(
    ensureInstance(server, seen, claims, storage, { ...powerOf(source), send: { ...send, isCancelled: true } }),
  )
}

const isStoppedForMove = ({ server, source, moveId, operation }: Moving): boolean =>
  source?.spec.power === 'stopped' &&
  server.spec.desiredPower === 'running' &&
  [moveId, operation.id].includes(source.spec.stop?.id ?? '')

/** A guest that could not be sent while it runs, where its owner or the operator prefers a moved server to an
 *  undisturbed one. */
function mayGoCold(moving: Moving): boolean {
  const { operation, source, moveId, seen, targetNode } = moving
  if (operation.id !== moveId || operation.kind !== 'server.migrate' || modeOf(moving) !== 'live_then_cold')
    return false
  if (source?.status?.state !== 'running' || source.spec.power !== 'running' || madeFor(source) === operation.id)
    return false
  return reasonToEnd(moving) === undefined && sourceWord(moving) === 'stays' && !isSilent(seen, targetNode)
}

/** The operation that began the move ends as it deserves; one that settles a move has done so. */
export function ended(work: Work, reason: string): Decision {
  const { operation } = work
  const decision = { ...asBefore(work), step: 'reserved' }
  if (operation.kind === 'server.settle_migration') return { ...decision, ...settledAs('source', work) }
  return isCancelled(operation)
    ? {
        ...decision,
        outcome: 'cancelled',
        events: [{ kind: 'move_cancelled', message: 'The server stays on its node.' }],
      }
    : { ...decision, outcome: 'failed', error: reason }
}

/** How settling ends when the nodes' words have made this end the winner, whichever an operator had asked for. */
export const settledAs = (winner: 'source' | 'target', { operation }: Work): Pick<Decision, 'outcome' | 'error'> => {
  const wanted = operation.arguments?.['winner'] ?? 'auto'
  return wanted === 'auto' || wanted === winner
    ? { outcome: 'succeeded' }
    : { outcome: 'failed', error: `The guest is on the ${winner} of the move, and the server with it.` }
}

/** What only the move needed. */
export const forgetKeys = (server: ServerObject, nodes: readonly string[]): readonly Action[] =>
  nodes.map((node) => ({ do: 'remove', type: Secret, key: moveKeyKey(server, node) }))

/** Removes the copy that the node has. */
export const forgetUserData = (server: ServerObject, node: string): readonly Action[] =>
  server.spec.userDataSecretName === undefined ? [] : [{ do: 'remove', type: Secret, key: userDataKey(server, node) }]
