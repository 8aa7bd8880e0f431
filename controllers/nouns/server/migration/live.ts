/** The flow of server.migrate: the running guest is sent to another node. The source stays its node until the target
 *  reports that it runs there. No progress is lost when a process dies: the next reconcile reads it from both nodes'
 *  reports. Failed attempts are repeated as the server's policy allows; then the move is rolled back, or the server is
 *  stopped and moved where that is allowed. */
import { defined } from '../../../../domain/defined.ts'
import { sendSeconds } from '../../../../domain/server/migration-policies.ts'
import type { InstanceSpec } from '../../../../resources/instance/index.ts'
import type { Decision, OperationInput, Rule } from '../decision.ts'
import { ensureInstance, powerOf } from '../drafts.ts'
import { awaitArrival, prepareReceiver } from './handover.ts'
import { transferStopped } from './cold.ts'
import {
  hasTargetDisks,
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
import { firstDecision, present } from '../../../kit/operation/decision.ts'
import { withReservation } from './reservation.ts'
import { cutOver } from './cutover.ts'
import { removeTarget, rollBack } from './rollback.ts'

/** `server.migrate`: the first rule that applies decides. */
export const migrateLive = (input: OperationInput): Decision =>
  withReservation(input, (input) => firstDecision(input, RULES))

/** The cold mode was requested, or the move has fallen back to it. */
const isCold = (input: MigrationInput): boolean =>
  input.recorded.state === 'detached' || modeOf(input) === 'cold' || input.source?.spec.stop?.id === input.migrationId

const arrived: Rule<MigrationInput> = (input) => (targetState(input) === 'arrived' ? cutOver(input) : undefined)

/** The sender no longer has the guest. When the receiver does not have it either, it is started again on the source. */
const handedOver: Rule<MigrationInput> = (input) => {
  if (sourceState(input) !== 'handed_over') return undefined
  return isGuestLost(input) ? rollBack(input, 'The guest was lost when it was handed over.') : awaitArrival(input)
}

const cold: Rule<MigrationInput> = (input) => (isCold(input) ? transferStopped(input) : undefined)

const aborted: Rule<MigrationInput> = (input) => {
  const { recorded, source, observed, sourceNode, targetNode } = input
  const senderState = sourceState(input)
  if (recorded.state === 'aborting') return rollBack(input, recorded.detail)
  const reason =
    reasonToAbort(input) ??
    (isFenced(observed, sourceNode) ? `Node ${sourceNode} was lost.` : undefined) ??
    (senderState === 'ended' || source?.spec.power === 'stopped'
      ? 'The guest ended while it was to be moved.'
      : senderState === 'gone'
        ? 'The instance of the server was removed.'
        : undefined) ??
    (isUnreachable(observed, targetNode) ? `Node ${targetNode} does not answer.` : undefined)
  return reason === undefined ? undefined : rollBack(input, reason)
}

/** Prepares a receiver for the first attempt, or for the next one once the source reports that the guest runs there. */
const receiverPrepared: Rule<MigrationInput> = (input) => {
  const { server, source, target, targetNode } = input
  if (source === undefined) return undefined
  const receiverState = targetState(input)
  const state = input.recorded.state === 'sending' ? 'sending' : 'preparing'
  if (receiverState === 'stale')
    return inState(input, state, {
      actions: removeTarget(input),
      waitFor: `the instance before to be gone from node ${targetNode}`,
    })
  const sendAttempt = sentAttempt(input)
  const receiveAttempt = target?.spec.receive?.attempt ?? 0
  if (
    sourceState(input) !== 'stays' ||
    (receiverState !== 'gone' && receiverState !== 'failed' && sendAttempt !== receiveAttempt)
  )
    return undefined
  const attempts = Math.max(sendAttempt, receiveAttempt)
  if (attempts >= policyOf(server).attemptsMaximum)
    return rollBack(
      input,
      `The guest could not be sent in ${attempts} ${attempts === 1 ? 'attempt' : 'attempts'}: ${failureOf(input)}`,
    )
  if (!hasTargetDisks(input, 'mirror'))
    return inState(input, state, {
      actions: removeTarget(input),
      waitFor: `the disk to be made on node ${targetNode}`,
    })
  return inState(input, state, {
    actions: [shareKeys(input), ...prepareReceiver(input, source, attempts + 1)],
    waitFor: `node ${targetNode} to be ready for the guest`,
  })
}

const failureOf = ({ source, target }: MigrationInput): string =>
  source?.status?.transfer?.detail || target?.status?.transfer?.detail || 'the nodes do not say why.'

/** Orders the source to send the guest to the receiver's address. */
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
    ...defined({ diskPort }),
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
