/** node.fence: proof that nothing of a silent node runs any more, so that its servers may live elsewhere. There is a
 *  ladder of ways to it; each rung holds, is being climbed, or fails and leaves it to the next, so that a management
 *  controller which lost its power together with its host holds nobody up. Without proof the node stays unreachable:
 *  nothing here ever guesses. */
import type { NodeFence, NodePower, NodeStorageBlock } from '../../resources/node/index.ts'
import type { OperationEvent } from '../../kit/reconcile/action.ts'
import type { NodeAction } from './actions.ts'
import type { Decision } from './decision.ts'
import { fencedState, isReachable, type NodeStateReport } from './state.ts'
import type { ReconcileInput, OperationInput } from './observed.ts'

export type FenceMethod = NodeFence['method']

/** What a rung has come to. */
type MethodResult =
  | { readonly is: 'proven'; readonly evidence: string }
  | {
      readonly is: 'climbed'
      readonly decision: Pick<Decision, 'actions' | 'waitFor' | 'waitSeconds' | 'status'>
      readonly events?: readonly OperationEvent[]
    }
  | { readonly is: 'failed'; readonly reason: string }

/** Two readings at least this far apart say that power is off and stays off. */
export const OFF_SECONDS = 5
/** A controller that does not answer is asked again so often, and power that does not go is cut again so often. */
export const POWER_TRIES_MAXIMUM = 3
const READ_SECONDS = 5
/** Storage that does not acknowledge is asked again so often. */
export const STORAGE_TRIES_MAXIMUM = 3

const METHODS: Readonly<Record<string, readonly FenceMethod[]>> = {
  auto: ['power_off', 'storage_block', 'attest'],
  power_off: ['power_off'],
  storage_block: ['storage_block'],
  attest: ['attest'],
}

/** Guards in order: proven before, the node answers after all, the rungs. */
export function fence(input: OperationInput): Decision {
  const { node, observed, operation } = input
  const args = operation.arguments ?? {}
  if (node.status?.fence !== undefined) return { step: 'fenced', outcome: 'succeeded' }
  if (isReachable(node, observed) && args['force'] !== 'true') return nodeAnswers(input)
  const failures: string[] = []
  const events: OperationEvent[] = []
  for (const method of METHODS[args['method'] ?? 'auto'] ?? []) {
    const rung = METHOD_RESULTS[method](input)
    if (rung.is === 'proven')
      return {
        ...proven(input, method, rung.evidence),
        events: [...events, { kind: 'evidence', message: rung.evidence, data: { method } }],
      }
    if (rung.is === 'climbed')
      return { step: 'proof', state: FENCING, ...rung.decision, events: [...events, ...(rung.events ?? [])] }
    failures.push(rung.reason)
    events.push({ kind: 'no_evidence', message: rung.reason, data: { method } })
  }
  return {
    step: 'proof',
    outcome: 'failed',
    error: `There is no proof that nothing of the node runs any more. ${failures.join(' ')}`,
    events,
    status: { power: undefined },
  }
}

const FENCING: NodeStateReport = {
  state: 'fencing',
  reason: 'Fencing',
  detail: 'Proof is being sought that nothing runs on it any more.',
}

/** Nothing that was asked for is wrong, but there is nothing to do: its servers are where they were. */
const nodeAnswers = ({ operation }: OperationInput): Decision =>
  operation.actor.startsWith('system:')
    ? { step: 'proof', outcome: 'cancelled', events: [{ kind: 'node_answers', message: 'The node answers again.' }] }
    : {
        step: 'proof',
        outcome: 'failed',
        error: 'The node answers. Fence it with force when it must lose its servers all the same.',
      }

function proven({ node, observed, operation, now }: OperationInput, method: FenceMethod, evidence: string): Decision {
  const fenced: NodeFence = {
    operationId: operation.id,
    at: now.toISOString(),
    method,
    evidence,
    bootId: observed.report?.bootId ?? node.status?.bootId ?? '',
  }
  return {
    step: 'fenced',
    outcome: 'succeeded',
    state: fencedState(fenced),
    status: { fence: fenced, power: undefined },
  }
}

const METHOD_RESULTS: Readonly<Record<FenceMethod, (input: OperationInput) => MethodResult>> = {
  power_off: byPower,
  storage_block: byStorage,
  attest: byAttest,
}

/** Guards in order: no controller, off for good, off once, not to be had, on after all cuts, on. */
function byPower({ node, now }: OperationInput): MethodResult {
  const {
    spec: { bmc },
    status: { power } = {},
  } = node
  if (bmc === undefined) return failed('It has no management controller.')
  if (power !== undefined && isOffConfirmed(power))
    return {
      is: 'proven',
      evidence: `Its management controller said at ${power.since} and at ${power.readAt} that its power is off.`,
    }
  const isFresh = power !== undefined && now.getTime() - Date.parse(power.readAt) < READ_SECONDS * 1_000
  const waiting = { waitFor: 'its management controller', waitSeconds: READ_SECONDS }
  if (isFresh) return { is: 'climbed', decision: waiting }
  if (power?.state === 'off')
    return {
      is: 'climbed',
      decision: { actions: [readPower], ...waiting },
      events: [{ kind: 'power_off_seen', message: 'Its power is off; it is looked at once more.' }],
    }
  if (power !== undefined && power.failures >= POWER_TRIES_MAXIMUM)
    return failed(`Its management controller gives no answer: ${power.detail}`)
  if (power === undefined || power.state === 'unknown')
    return { is: 'climbed', decision: { actions: [readPower], ...waiting } }
  if (power.cuts >= POWER_TRIES_MAXIMUM) return failed(`Its power was cut ${power.cuts} times and is still on.`)
  return {
    is: 'climbed',
    decision: { actions: [cutPower], ...waiting },
    events: [{ kind: 'power_off_requested', message: 'Its management controller is told to cut the power.' }],
  }
}

/** Two readings that are far enough apart: a host that restarts is off for a moment too. */
export const isOffConfirmed = (power: NodePower): boolean =>
  power.state === 'off' && Date.parse(power.readAt) - Date.parse(power.since) >= OFF_SECONDS * 1_000

export const readPower = { do: 'effect', name: 'power', input: { ask: 'state' } } as const
const cutPower = { do: 'effect', name: 'power', input: { ask: 'off' } } as const

/** A guest that can write nothing any more counts as ended, for those whose disk lies there. Only the storage itself
 *  can say so: locks on files, and a list of the fenced that agents keep to, do not stop a guest that runs. Guards in
 *  order: no way to, not begun, acknowledged, not to be had, asked just now. An acknowledgement for an earlier fencing
 *  is none: access may have been given back since. */
function byStorage({ node, operation, now }: OperationInput): MethodResult {
  const {
    spec: { storageAccess },
    status: { storageBlock: known } = {},
  } = node
  if (storageAccess === undefined) return failed('Its access to shared storage cannot be taken away.')
  const waiting = { waitFor: 'its shared storage', waitSeconds: READ_SECONDS }
  if (known?.operationId !== operation.id) {
    const addresses = [...new Set([...(known?.access.addresses ?? []), ...storageAccess.addresses])]
    const storageBlock: NodeStorageBlock = {
      operationId: operation.id,
      access: { ...storageAccess, addresses },
      isTaken: false,
      readAt: now.toISOString(),
      failures: 0,
      detail: '',
    }
    return {
      is: 'climbed',
      decision: { status: { storageBlock }, ...waiting, waitSeconds: 0 },
      events: [{ kind: 'storage_block_requested', message: 'Its shared storage is told to serve it no more.' }],
    }
  }
  if (known.isTaken) {
    const addresses = known.access.addresses.join(' and ')
    return proof(
      `The quorum of its shared storage acknowledged at ${known.readAt} that it serves ${addresses} no more.`,
    )
  }
  if (known.failures >= STORAGE_TRIES_MAXIMUM)
    return failed(`Its shared storage does not acknowledge that it serves it no more: ${known.detail}`)
  return { is: 'climbed', decision: { actions: hasJustFailed(known, now) ? [] : [blockAccess], ...waiting } }
}

const blockAccess = { do: 'effect', name: 'storage', input: { ask: 'take' } } as const
const restoreAccess = { do: 'effect', name: 'storage', input: { ask: 'give' } } as const

/** Gives back what was taken, or may have been. Whoever calls knows that nothing of what ran on the node before can
 *  write any more, or that nothing of it was ever started elsewhere. */
export function restoreStorageAccess({ node, now }: ReconcileInput): readonly NodeAction[] {
  const { storageBlock } = node.status ?? {}
  return storageBlock === undefined || hasJustFailed(storageBlock, now) ? [] : [restoreAccess]
}

/** Storage that was asked in vain a moment ago is not asked again yet. */
const hasJustFailed = ({ failures, readAt }: NodeStorageBlock, now: Date): boolean =>
  failures > 0 && now.getTime() - Date.parse(readAt) < READ_SECONDS * 1_000

/** Two people say so: the one who asked, and another. Their word does not go before that of the node's own agent. */
function byAttest({ node, observed, operation }: OperationInput): MethodResult {
  const { second_approver: second, reason = '' } = operation.arguments ?? {}
  if (isReachable(node, observed)) return failed('Nobody can attest it of a node that answers.')
  if (second === undefined) return failed('Nobody attests it.')
  const approver = operation.arguments?.['approver'] ?? operation.actor
  const suffix = reason === '' ? '' : `: ${reason}`
  return proof(`${approver} and ${second} attest that nothing of it runs${suffix}.`)
}

const EVIDENCE_LENGTH_MAXIMUM = 1_024
const proof = (evidence: string): MethodResult => ({
  is: 'proven',
  evidence: evidence.slice(0, EVIDENCE_LENGTH_MAXIMUM),
})
const failed = (reason: string): MethodResult => ({ is: 'failed', reason })
