/** The end of a move that does not come about: the guest is known to go on where it was, or is made to, and what the
 *  other node holds is given back. Nothing is undone before the sender has said that the guest goes on there. */
import { isCancelled } from '../../../domain/operations.ts'
import { Secret } from '../../../kit/kube/object.ts'
import type { ServerAction } from '../actions.ts'
import { Instance } from '../../../resources/instance/index.ts'
import { unchanged, type Decision, type OperationInput } from '../decision.ts'
import { ensureInstance, instanceKey, madeFor, migrationKeyKey, powerOf, userDataKey } from '../drafts.ts'
import {
  inState,
  isFenced,
  isUnreachable,
  type MigrationInput,
  modeOf,
  reasonToAbort,
  shouldRun,
  sourceState,
} from './input.ts'
import { present } from '../../operation/decision.ts'
import { nextIncarnation } from '../power/index.ts'
import { type ServerObject, serverIdOf } from '../observed.ts'

/** Guards in order: not written, sender silent or busy, receiver there, cold instead, guest to be brought back, all
 *  done. */
export function undo(input: MigrationInput, reason: string): Decision {
  const { server, observed, claims, storage, source, target, sourceNode, targetNode, recorded } = input
  const why = recorded.state === 'aborting' && recorded.detail !== '' ? recorded.detail : reason
  const decision = inState(input, 'aborting', {
    reason: why,
    events: [{ kind: 'undoing', message: `The move is undone: ${why}` }],
  })
  if (recorded.state !== 'aborting')
    return { ...decision, actions: cancelSend(input), waitSeconds: 0, waitFor: 'the next look' }

  const senderState = sourceState(input)
  if (senderState === 'sending')
    return {
      ...decision,
      actions: cancelSend(input),
      waitFor: `node ${sourceNode} to say that the guest goes on there`,
    }
  const isSafe =
    isFenced(observed, targetNode) ||
    ((senderState === 'stays' || senderState === 'ended') && isUnreachable(observed, targetNode))
  if (target !== undefined && !isSafe)
    return { ...decision, actions: removeTarget(input), waitFor: `node ${targetNode} to let go of the guest` }
  if (mayFallBackToCold(input))
    return inState(input, 'detached', {
      events: [{ kind: 'cold_fallback', message: `The server is stopped and moved: ${why}` }],
      waitSeconds: 0,
      waitFor: 'the next look',
    })

  if (
    source === undefined ||
    ((source.status?.state === 'handed_over' || isStoppedForMove(input)) && madeFor(source) !== input.operation.id)
  ) {
    const isRunning = shouldRun(input)
    const power = {
      power: isRunning ? 'running' : 'stopped',
      incarnation: isRunning ? nextIncarnation(input) : (server.status?.incarnation ?? 0),
      operationId: input.operation.id,
    } as const
    return {
      ...decision,
      state: isRunning ? 'starting' : 'stopped',
      actions: present(ensureInstance(server, observed, claims, storage, power)),
      waitFor: `node ${sourceNode} to take the server back`,
    }
  }
  const kept = present(
    ensureInstance(server, observed, claims, storage, { ...powerOf(source), send: undefined, receive: undefined }),
  )
  const held: ServerAction = {
    do: 'effect',
    name: 'release',
    input: { ...serverIdOf(server, observed), operationId: input.migrationId },
  }
  const end = finishUndone(input, why)
  return {
    ...decision,
    ...end,
    state: decision.state,
    actions: [
      ...removeTarget(input),
      ...kept,
      ...removeMigrationKeys(server, [sourceNode, targetNode]),
      ...removeUserDataCopy(server, targetNode),
      held,
    ],
    events: [...(decision.events ?? []), ...(end.events ?? [])],
  }
}

/** What the other node has of the server goes; free when it is going. */
export const removeTarget = ({ server, target, targetNode }: MigrationInput): readonly ServerAction[] =>
  target === undefined || target.metadata.deletionTimestamp !== undefined
    ? []
    : [{ do: 'remove', type: Instance, key: instanceKey(server, targetNode) }]

/** The sender is told to stop sending, where it was told to send. */
function cancelSend(input: MigrationInput): readonly ServerAction[] {
  const { server, observed, claims, storage, source } = input
  const send = source?.spec.send
  if (source === undefined || send === undefined || send.isCancelled || sourceState(input) !== 'sending') return []
  return present(
    ensureInstance(server, observed, claims, storage, { ...powerOf(source), send: { ...send, isCancelled: true } }),
  )
}

const isStoppedForMove = ({ server, source, migrationId, operation }: MigrationInput): boolean =>
  source?.spec.power === 'stopped' &&
  server.spec.desiredPower === 'running' &&
  [migrationId, operation.id].includes(source.spec.stop?.id ?? '')

/** A guest that could not be sent while it runs, where its owner or the operator prefers a moved server to an
 *  undisturbed one. */
function mayFallBackToCold(input: MigrationInput): boolean {
  const { operation, source, migrationId, observed, targetNode } = input
  if (operation.id !== migrationId || operation.kind !== 'server.migrate' || modeOf(input) !== 'live_then_cold')
    return false
  if (source?.status?.state !== 'running' || source.spec.power !== 'running' || madeFor(source) === operation.id)
    return false
  return reasonToAbort(input) === undefined && sourceState(input) === 'stays' && !isUnreachable(observed, targetNode)
}

/** The operation that began the move ends as it deserves; one that settles a move has done so. */
export function finishUndone(input: OperationInput, reason: string): Decision {
  const { operation } = input
  const decision = { ...unchanged(input), step: 'reserved' }
  if (operation.kind === 'server.settle_migration') return { ...decision, ...outcomeOf('source', input) }
  return isCancelled(operation)
    ? {
        ...decision,
        outcome: 'cancelled',
        events: [{ kind: 'move_cancelled', message: 'The server stays on its node.' }],
      }
    : { ...decision, outcome: 'failed', error: reason }
}

/** How settling ends when the nodes' words have made this end the winner, whichever an operator had asked for. */
export const outcomeOf = (
  winner: 'source' | 'target',
  { operation }: OperationInput,
): Pick<Decision, 'outcome' | 'error'> => {
  const wanted = operation.arguments?.['winner'] ?? 'auto'
  return wanted === 'auto' || wanted === winner
    ? { outcome: 'succeeded' }
    : { outcome: 'failed', error: `The guest is on the ${winner} of the move, and the server with it.` }
}

/** What only the move needed. */
export const removeMigrationKeys = (server: ServerObject, nodes: readonly string[]): readonly ServerAction[] =>
  nodes.map((node) => ({ do: 'remove', type: Secret, key: migrationKeyKey(server, node) }))

/** Removes the copy that the node has. */
export const removeUserDataCopy = (server: ServerObject, node: string): readonly ServerAction[] =>
  server.spec.userDataSecretName === undefined ? [] : [{ do: 'remove', type: Secret, key: userDataKey(server, node) }]
