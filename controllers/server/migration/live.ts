/** The flow of server.migrate: the running guest is sent to another node. It goes on where it is until the other node
 *  says that it runs
 *  there; whoever is killed in between, the next turn reads from both nodes how far it is. Attempts that fail are tried
 *  again as the
 *  server's policy says, then undone, or the server is stopped and moved where that is allowed. */
import { sendSeconds } from '../../../domain/migration-policies.ts'
import type { InstanceSpec } from '../../../resources/instance/index.ts'
import type { Decision, Work } from '../decision.ts'
import { ensureInstance, powerOf } from '../drafts.ts'
import { awaitArrival, receiver } from './handover.ts'
import { moveStopped } from './cold.ts'
import {
  hasDiskThere,
  inState,
  isFenced,
  isLost,
  isSilent,
  modeOf,
  type Moving,
  policyOf,
  reasonToEnd,
  sentAttempt,
  sentGibibytes,
  sourceWord,
  targetWord,
} from './input.ts'
import { shareKeys } from './effects.ts'
import { first, present, type Rule } from '../power/index.ts'
import { reserved } from './reservation.ts'
import { switched } from './cutover.ts'
import { removeTarget, undo } from './undo.ts'

/** `server.migrate`: the first rule that applies decides. */
export const migrate = (work: Work): Decision => reserved(work, (moving) => first(moving, RULES))

/** Asked for, or fallen back to. */
const isCold = (moving: Moving): boolean =>
  moving.written.state === 'detached' || modeOf(moving) === 'cold' || moving.source?.spec.stop?.id === moving.moveId

const arrived: Rule<Moving> = (moving) => (targetWord(moving) === 'arrived' ? switched(moving) : undefined)

/** Both ends have let go of the guest: it is started again where its disks are. */
const lost: Rule<Moving> = (moving) => {
  if (sourceWord(moving) !== 'handed_over') return undefined
  return isLost(moving) ? undo(moving, 'The guest was lost when it was handed over.') : awaitArrival(moving)
}

const cold: Rule<Moving> = (moving) => (isCold(moving) ? moveStopped(moving) : undefined)

const hopeless: Rule<Moving> = (moving) => {
  const { written, source, seen, sourceNode, targetNode } = moving
  const word = sourceWord(moving)
  if (written.state === 'aborting') return undo(moving, written.detail)
  const reason =
    reasonToEnd(moving) ??
    (isFenced(seen, sourceNode) ? `Node ${sourceNode} was lost.` : undefined) ??
    (word === 'ended' || source?.spec.power === 'stopped'
      ? 'The guest ended while it was to be moved.'
      : word === 'gone'
        ? 'The instance of the server was removed.'
        : undefined) ??
    (isSilent(seen, targetNode) ? `Node ${targetNode} does not answer.` : undefined)
  return reason === undefined ? undefined : undo(moving, reason)
}

/** A receiver for the first attempt, or for the next one after the sender has said that the guest goes on there. */
const received: Rule<Moving> = (moving) => {
  const { server, source, target, targetNode } = moving
  if (source === undefined) return undefined
  const word = targetWord(moving)
  const state = moving.written.state === 'sending' ? 'sending' : 'preparing'
  if (word === 'in_the_way')
    return inState(moving, state, {
      actions: removeTarget(moving),
      waitFor: `the instance before to be gone from node ${targetNode}`,
    })
  const sent = sentAttempt(moving)
  const held = target?.spec.receive?.attempt ?? 0
  if (sourceWord(moving) !== 'stays' || (word !== 'gone' && word !== 'failed' && sent !== held)) return undefined
  const tried = Math.max(sent, held)
  if (tried >= policyOf(server).attemptsMaximum)
    return undo(
      moving,
      `The guest could not be sent in ${tried} ${tried === 1 ? 'attempt' : 'attempts'}: ${failureOf(moving)}`,
    )
  if (!hasDiskThere(moving, 'mirror'))
    return inState(moving, state, {
      actions: removeTarget(moving),
      waitFor: `the disk to be made on node ${targetNode}`,
    })
  return inState(moving, state, {
    actions: [shareKeys(moving), ...receiver(moving, source, tried + 1)],
    waitFor: `node ${targetNode} to be ready for the guest`,
  })
}

const failureOf = ({ source, target }: Moving): string =>
  source?.status?.transfer?.detail || target?.status?.transfer?.detail || 'the nodes do not say why.'

/** The sender is told where the receiver listens. */
const sent: Rule<Moving> = (moving) => {
  const { server, seen, claims, storage, source, target, sourceNode } = moving
  if (source === undefined || targetWord(moving) !== 'listening' || sourceWord(moving) !== 'stays') return undefined
  if (source.status?.state !== 'running') return inState(moving, 'preparing', { waitFor: 'the guest to run' })
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
    timeoutSeconds: sendSeconds(policy, sentGibibytes(moving)),
    isCancelled: false,
  }
  return inState(moving, 'sending', {
    actions: present(ensureInstance(server, seen, claims, storage, { ...powerOf(source), send })),
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

const transferring: Rule<Moving> = (moving) => {
  const isSending = sourceWord(moving) === 'sending'
  return inState(moving, isSending || moving.written.state === 'sending' ? 'sending' : 'preparing', {
    waitFor: isSending ? 'the guest to be sent' : `node ${moving.targetNode} to be ready for the guest`,
  })
}

const RULES: readonly Rule<Moving>[] = [arrived, lost, cold, hopeless, received, sent, transferring]
