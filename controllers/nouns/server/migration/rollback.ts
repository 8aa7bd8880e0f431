/** Rolls a move back: the guest continues on the source, or is started there again, and the target's resources are
 *  released. Nothing is removed from the target before the source reports whether it still has the guest. */
import { isCancelled } from '../../../../domain/operations.ts'
import { Secret } from '../../../../kit/kube/object.ts'
import type { ServerAction } from '../actions.ts'
import { Instance } from '../../../../resources/instance/index.ts'
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
import { present } from '../../../kit/operation/decision.ts'
import { nextIncarnation } from '../power/index.ts'
import { type ServerObject, serverIdOf } from '../observed.ts'

/** Guards in order: abort not recorded, sender has not confirmed, receiver remains, cold fallback, guest to start again
 *  on the source, all done. */
export function rollBack(input: MigrationInput, reason: string): Decision {
  const { server, observed, claims, storage, source, target, sourceNode, targetNode, recorded } = input
  const cause = recorded.state === 'aborting' && recorded.detail !== '' ? recorded.detail : reason
  const decision = inState(input, 'aborting', {
    reason: cause,
    events: [{ kind: 'undoing', message: `The move is undone: ${cause}` }],
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
    return { ...decision, actions: removeTarget(input), waitFor: `node ${targetNode} to release the guest` }
  if (mayFallBackToCold(input))
    return inState(input, 'detached', {
      events: [{ kind: 'cold_fallback', message: `The server is stopped and moved: ${cause}` }],
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
  const cleared = present(
    ensureInstance(server, observed, claims, storage, { ...powerOf(source), send: undefined, receive: undefined }),
  )
  const release: ServerAction = {
    do: 'effect',
    name: 'release',
    input: { ...serverIdOf(server, observed), operationId: input.migrationId },
  }
  const end = finishRollback(input, cause)
  return {
    ...decision,
    ...end,
    state: decision.state,
    actions: [
      ...removeTarget(input),
      ...cleared,
      ...removeMigrationKeys(server, [sourceNode, targetNode]),
      ...removeUserDataCopy(server, targetNode),
      release,
    ],
    events: [...(decision.events ?? []), ...(end.events ?? [])],
  }
}

/** Removes the target's instance. Idempotent. */
export const removeTarget = ({ server, target, targetNode }: MigrationInput): readonly ServerAction[] =>
  target === undefined || target.metadata.deletionTimestamp !== undefined
    ? []
    : [{ do: 'remove', type: Instance, key: instanceKey(server, targetNode) }]

/** Orders the source to cancel a send that it was ordered to make. */
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

/** The guest could not be sent while running, and the mode allows stopping it for the move. */
function mayFallBackToCold(input: MigrationInput): boolean {
  const { operation, source, migrationId, observed, targetNode } = input
  if (operation.id !== migrationId || operation.kind !== 'server.migrate' || modeOf(input) !== 'live_then_cold')
    return false
  if (source?.status?.state !== 'running' || source.spec.power !== 'running' || madeFor(source) === operation.id)
    return false
  return reasonToAbort(input) === undefined && sourceState(input) === 'stays' && !isUnreachable(observed, targetNode)
}

/** The move's own operation fails or is cancelled. One that resolves an earlier move succeeds unless it named the
 *  target. */
export function finishRollback(input: OperationInput, reason: string): Decision {
  const { operation } = input
  const decision = { ...unchanged(input), step: 'reserved' as const }
  if (operation.kind === 'server.settle_migration') return { ...decision, ...outcomeOf('source', input) }
  return isCancelled(operation)
    ? {
        ...decision,
        outcome: 'cancelled',
        events: [{ kind: 'move_cancelled', message: 'The server stays on its node.' }],
      }
    : { ...decision, outcome: 'failed', error: reason }
}

/** The outcome of resolving a move in favour of `winner`: failed when the operator named the other node. */
export const outcomeOf = (
  winner: 'source' | 'target',
  { operation }: OperationInput,
): Pick<Decision, 'outcome' | 'error'> => {
  const wanted = operation.arguments?.['winner'] ?? 'auto'
  return wanted === 'auto' || wanted === winner
    ? { outcome: 'succeeded' }
    : { outcome: 'failed', error: `The guest is on the ${winner} of the move, and the server with it.` }
}

/** Removes the keys that only the move needed. */
export const removeMigrationKeys = (server: ServerObject, nodes: readonly string[]): readonly ServerAction[] =>
  nodes.map((node) => ({ do: 'remove', type: Secret, key: migrationKeyKey(server, node) }))

/** Removes the node's copy of the user data. */
export const removeUserDataCopy = (server: ServerObject, node: string): readonly ServerAction[] =>
  server.spec.userDataSecretName === undefined ? [] : [{ do: 'remove', type: Secret, key: userDataKey(server, node) }]
