/** The flow of server.move, and of server.migrate once its guest may be stopped: disks first, then the instance. The
 *  instance is created on the target only after it was removed from the source, so two copies never run. A failure
 *  before the server runs on the target rolls the move back. */
import { Instance } from '../../../../resources/instance/index.ts'
import type { Decision, OperationInput, Rule } from '../decision.ts'
import { ensureInstance, instanceKey, powerOf } from '../drafts.ts'
import { shareKeys } from './effects.ts'
import {
  hasTargetDisks,
  targetVolumesOf,
  inState,
  isRunningOnTarget,
  isUnreachable,
  type MigrationInput,
  reasonToAbort,
  shouldRun,
} from './input.ts'
import { firstDecision, present } from '../../../kit/operation/decision.ts'
import { hasEnded, hasObservedSpec, nextIncarnation, stopOf } from '../power/index.ts'
import { withReservation } from './reservation.ts'
import { cutOver } from './cutover.ts'
import { removeTarget, rollBack } from './rollback.ts'

/** `server.move`: the first rule that applies decides. */
export const migrateCold = (input: OperationInput): Decision => withReservation(input, transferStopped)

/** The move of a stopped server whose capacity on the target is reserved. */
export const transferStopped = (input: MigrationInput): Decision => firstDecision(input, RULES)

const arrived: Rule<MigrationInput> = (input) => (isRunningOnTarget(input) ? cutOver(input) : undefined)

const aborted: Rule<MigrationInput> = (input) => {
  if (input.recorded.state === 'aborting') return rollBack(input, input.recorded.detail)
  const reason = reasonAgainst(input)
  return reason === undefined ? undefined : rollBack(input, reason)
}

/** Why a stopped server cannot move to the target; undefined when it can. */
export function reasonAgainst(input: MigrationInput): string | undefined {
  const { source, target, observed, targetNode } = input
  const brokenDisk = targetVolumesOf(input).find(({ status }) => status?.state === 'error')
  const broken =
    target?.status?.state === 'error' && hasObservedSpec(target)
      ? (target.status.detail ?? 'The guest could not be started.')
      : undefined
  return (
    reasonToAbort(input) ??
    broken ??
    (brokenDisk === undefined ? undefined : (brokenDisk.status?.detail ?? 'The disk could not be copied.')) ??
    (source !== undefined && isUnreachable(observed, targetNode) ? `Node ${targetNode} does not answer.` : undefined)
  )
}

const guestStopped: Rule<MigrationInput> = (input) => {
  const { server, observed, claims, storage, source, operation, sourceNode, migrationId } = input
  if (source === undefined || (source.spec.power === 'stopped' && hasEnded(source))) return undefined
  if (operation.kind === 'server.move' && server.spec.desiredPower === 'running')
    return rollBack(input, 'The server runs.')
  const power =
    source.spec.power === 'stopped'
      ? powerOf(source)
      : ({
          ...powerOf(source),
          power: 'stopped',
          stop: { ...stopOf(operation), id: migrationId },
          send: undefined,
        } as const)
  return inState(input, 'detached', {
    ...stateWhileMoved(input, 'stopping'),
    actions: present(ensureInstance(server, observed, claims, storage, power)),
    waitFor: isUnreachable(observed, sourceNode) ? `node ${sourceNode}` : 'the guest to end',
  })
}

/** A server that stays stopped after its move shows `stopped` throughout. */
const stateWhileMoved = (
  input: MigrationInput,
  state: 'stopping' | 'stopped' | 'starting',
): Pick<Decision, 'state'> => ({
  state: shouldRun(input) ? state : 'stopped',
})

/** Waits until the target node can use the disk. The storage controller prepares it once the move is `detached`. */
const diskCopied: Rule<MigrationInput> = (input) => {
  const {
    recorded: { state },
    source,
    targetNode,
  } = input
  const isCopied = targetVolumesOf(input).every(({ status }) => status?.state === 'ready')
  if (state === 'detached' && hasTargetDisks(input, 'copy') && isCopied) return undefined
  return inState(input, 'detached', {
    ...stateWhileMoved(input, 'stopped'),
    actions: source === undefined ? [] : [shareKeys(input)],
    waitFor: `the disk to be on node ${targetNode}`,
  })
}

const sourceRemoved: Rule<MigrationInput> = (input) => {
  const { server, source, target, sourceNode, targetNode } = input
  if (target !== undefined && (target.metadata.deletionTimestamp !== undefined || target.spec.receive !== undefined)) {
    return inState(input, 'detached', {
      ...stateWhileMoved(input, 'stopped'),
      actions: removeTarget(input),
      waitFor: `the instance before to be gone from node ${targetNode}`,
    })
  }
  if (source === undefined) return undefined
  const actions =
    source.metadata.deletionTimestamp === undefined
      ? [{ do: 'remove', type: Instance, key: instanceKey(server, sourceNode) } as const]
      : []
  return inState(input, 'detached', {
    ...stateWhileMoved(input, 'stopped'),
    actions,
    waitFor: `node ${sourceNode} to release the server`,
  })
}

const targetStarted: Rule<MigrationInput> = (input) => {
  const { server, observed, claims, storage, target, targetNode, operation } = input
  const isRunning = shouldRun(input)
  const power =
    target === undefined
      ? ({
          power: isRunning ? 'running' : 'stopped',
          incarnation: isRunning ? nextIncarnation(input) : (server.status?.incarnation ?? 0),
          operationId: operation.id,
        } as const)
      : powerOf(target)
  return inState(input, 'detached', {
    ...stateWhileMoved(input, 'starting'),
    step: 'moved',
    actions: present(ensureInstance(server, observed, claims, storage, power, { node: targetNode, instance: target })),
    waitFor: isRunning ? 'the guest to start' : `node ${targetNode} to take the server over`,
  })
}

const RULES: readonly Rule<MigrationInput>[] = [
  arrived,
  aborted,
  guestStopped,
  diskCopied,
  sourceRemoved,
  targetStarted,
]
