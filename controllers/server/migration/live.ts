/** The flow of server.migrate: the running guest is sent to another node. It goes on where it is until the other node
 *  says that it runs there; whoever is killed in between, the next reconcile reads from both nodes how far it is.
 *  Attempts that fail are tried again as the server's policy says, then undone, or the server is stopped and moved
 *  where that is allowed. */
import { sendSeconds } from '../../../domain/migration-policies.ts'
import type { InstanceSpec } from '../../../resources/instance/index.ts'
import type { Decision, OperationInput, Rule } from '../decision.ts'
import { ensureInstance, powerOf } from '../drafts.ts'
import { awaitArrival, prepareReceiver } from './handover.ts'
import { transferStopped } from './cold.ts'
import {
  hasTargetDisk,
  inState,
  isFenced,
  isGuestLost,
  isUnreachable,
  modeOf,
  type MigrationInput,
  policyOf,
  reasonToAbort,
  sentAttempt,
  gibibytesToSend,
  sourceState,
  targetState,
} from './input.ts'
import { shareKeys } from './effects.ts'
import { firstDecision, present } from '../../operation/decision.ts'
import { withReservation } from './reservation.ts'
import { cutOver } from './cutover.ts'
import { removeTarget, undo } from './undo.ts'

/** `server.migrate`: the first rule that applies decides. */
export const migrateLive = (input: OperationInput): Decision =>
  withReservation(input, (input) => firstDecision(input, RULES))

/** Asked for, or fallen back to. */
const isCold = (input: MigrationInput): boolean =>
  input.recorded.state === 'detached' || modeOf(input) === 'cold' || input.source?.spec.stop?.id === input.migrationId

const arrived: Rule<MigrationInput> = (input) => (targetState(input) === 'arrived' ? cutOver(input) : undefined)

/** Both ends have let go of the guest: it is started again where its disks are. */
const handedOver: Rule<MigrationInput> = (input) => {
  if (sourceState(input) !== 'handed_over') return undefined
  return isGuestLost(input) ? undo(input, 'The guest was lost when it was handed over.') : awaitArrival(input)
}

const cold: Rule<MigrationInput> = (input) => (isCold(input) ? transferStopped(input) : undefined)

const aborted: Rule<MigrationInput> = (input) => {
  const { recorded, source, observed, sourceNode, targetNode } = input
  const senderState = sourceState(input)
  if (recorded.state === 'aborting') return undo(input, recorded.detail)
  const reason =
    reasonToAbort(input) ??
    (isFenced(observed, sourceNode) ? `Node ${sourceNode} was lost.` : undefined) ??
    (senderState === 'ended' || source?.spec.power === 'stopped'
      ? 'The guest ended while it was to be moved.'
      : senderState === 'gone'
        ? 'The instance of the server was removed.'
        : undefined) ??
    (isUnreachable(observed, targetNode) ? `Node ${targetNode} does not answer.` : undefined)
  return reason === undefined ? undefined : undo(input, reason)
}

/** A receiver for the first attempt, or for the next one after the sender has said that the guest goes on there. */
const receiverPrepared: Rule<MigrationInput> = (input) => {
  const { server, source, target, targetNode } = input
  if (source === undefined) return undefined
  const receiverState = targetState(input)
  const state = input.recorded.state === 'sending' ? 'sending' : 'preparing'
  if (receiverState === 'in_the_way')
    return inState(input, state, {
      actions: removeTarget(input),
      waitFor: `the instance before to be gone from node ${targetNode}`,
    })
  const sent = sentAttempt(input)
  const held = target?.spec.receive?.attempt ?? 0
  if (sourceState(input) !== 'stays' || (receiverState !== 'gone' && receiverState !== 'failed' && sent !== held))
    return undefined
  const tried = Math.max(sent, held)
  if (tried >= policyOf(server).attemptsMaximum)
    return undo(
      input,
      `The guest could not be sent in ${tried} ${tried === 1 ? 'attempt' : 'attempts'}: ${failureOf(input)}`,
    )
  if (!hasTargetDisk(input, 'mirror'))
    return inState(input, state, {
      actions: removeTarget(input),
      waitFor: `the disk to be made on node ${targetNode}`,
    })
  return inState(input, state, {
    actions: [shareKeys(input), ...prepareReceiver(input, source, tried + 1)],
    waitFor: `node ${targetNode} to be ready for the guest`,
  })
}

const failureOf = ({ source, target }: MigrationInput): string =>
  source?.status?.transfer?.detail || target?.status?.transfer?.detail || 'the nodes do not say why.'

/** The sender is told where the receiver listens. */
const sendStarted: Rule<MigrationInput> = (input) => {
  const { server, observed, claims, storage, source, target, sourceNode } = input
  if (source === undefined || targetState(input) !== 'listening' || sourceState(input) !== 'stays') return undefined
  if (source.status?.state !== 'running') return inState(input, 'preparing', { waitFor: 'the guest to run' })
  const { receive } = target?.spec ?? {}
  const { host, port, diskPort } = target?.status?.transfer ?? {}
  if (receive === undefined || host === undefined || port === undefined) return undefined
  const policy = policyOf(server)
  const send: InstanceSpec['send'] = {
    ...receive,
    host,
    port,
    ...(diskPort === undefined ? {} : { diskPort }),
    downtimeLimitMilliseconds: policy.downtimeLimitMilliseconds,
    isThrottled: policy.mayThrottle && receive.attempt > 1,
    timeoutSeconds: sendSeconds(policy, gibibytesToSend(input)),
    isCancelled: false,
  }
  return inState(input, 'sending', {
    actions: present(ensureInstance(server, observed, claims, storage, { ...powerOf(source), send })),
    waitFor: `node ${sourceNode} to send the guest`,
    events: [
      {
        kind: 'send_started',
        message: `Attempt ${receive.attempt} to send the guest.`,
        data: { attempt: receive.attempt },
      },
    ],
  })
}

const transferring: Rule<MigrationInput> = (input) => {
  const isSending = sourceState(input) === 'sending'
  return inState(input, isSending || input.recorded.state === 'sending' ? 'sending' : 'preparing', {
    waitFor: isSending ? 'the guest to be sent' : `node ${input.targetNode} to be ready for the guest`,
  })
}

const RULES: readonly Rule<MigrationInput>[] = [
  arrived,
  handedOver,
  cold,
  aborted,
  receiverPrepared,
  sendStarted,
  transferring,
]
