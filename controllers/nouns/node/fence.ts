/** node.fence: obtains proof that no guest of an unreachable node still runs, so that its servers may start elsewhere.
 *  The methods are tried in order; one that fails leaves it to the next, so that a management controller without power
 *  does not block the fencing. Without proof the node stays unreachable: starting its servers elsewhere could run two
 *  copies. */
import type { NodeFence, NodePower, NodeStorageBlock } from '../../../resources/node/index.ts'
import type { OperationEvent } from '../../../kit/reconcile/action.ts'
import type { NodeAction } from './actions.ts'
import type { Decision } from './decision.ts'
import { fencedState, isReachable, type NodeStateReport } from './state.ts'
import type { ReconcileInput, OperationInput } from './observed.ts'

export type FenceMethod = NodeFence['method']

/** How far a method is. */
type MethodResult =
  | { readonly kind: 'proven'; readonly evidence: string }
  | {
      readonly kind: 'pending'
      readonly decision: Pick<Decision, 'actions' | 'waitFor' | 'waitSeconds' | 'status'>
      readonly events?: readonly OperationEvent[]
    }
  | { readonly kind: 'failed'; readonly reason: string }

/** Power counts as off after two readings at least this far apart. */
export const OFF_SECONDS = 5
/** Limit of failed readings of the management controller, and of power cuts without effect. */
export const POWER_TRIES_MAXIMUM = 3
const READ_SECONDS = 5
/** Limit of requests that the shared storage does not acknowledge. */
export const STORAGE_TRIES_MAXIMUM = 3

const METHODS: Readonly<Record<string, readonly FenceMethod[]>> = {
  auto: ['power_off', 'storage_block', 'attest'],
  power_off: ['power_off'],
  storage_block: ['storage_block'],
  attest: ['attest'],
}

/** Guards in order: proven before, the node is reachable again, the methods. */
export function fence(input: OperationInput): Decision {
  const { node, observed, operation } = input
  const args = operation.arguments ?? {}
  if (node.status?.fence !== undefined) return { step: 'fenced', outcome: 'succeeded' }
  if (isReachable(node, observed) && args['force'] !== 'true') return nodeAnswers(input)
  const failures: string[] = []
  const events: OperationEvent[] = []
  for (const method of METHODS[args['method'] ?? 'auto'] ?? []) {
    const result = METHOD_RESULTS[method](input)
    if (result.kind === 'proven')
      return {
        ...proven(input, method, result.evidence),
        events: [...events, { kind: 'evidence', message: result.evidence, data: { method } }],
      }
    if (result.kind === 'pending')
      return { step: 'proof', state: FENCING, ...result.decision, events: [...events, ...(result.events ?? [])] }
    failures.push(result.reason)
    events.push({ kind: 'no_evidence', message: result.reason, data: { method } })
  }
  return {
    step: 'proof',
    outcome: 'failed',
    error: `There is no proof that nothing of the node still runs. ${failures.join(' ')}`,
    events,
    status: { power: undefined },
  }
}

const FENCING: NodeStateReport = {
  state: 'fencing',
  reason: 'Fencing',
  detail: 'The platform seeks proof that nothing still runs on it.',
}

/** A reachable node needs no fencing. A person's request fails, to point to `force`; the platform's is cancelled. */
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

/** Guards in order: no controller, off twice, read just now, off once, unreadable, unknown, on after all cuts, on. */
function byPower({ node, now }: OperationInput): MethodResult {
  const {
    spec: { bmc },
    status: { power } = {},
  } = node
  if (bmc === undefined) return failed('It has no management controller.')
  if (power !== undefined && isOffConfirmed(power))
    return {
      kind: 'proven',
      evidence: `Its management controller said at ${power.since} and at ${power.readAt} that its power is off.`,
    }
  const isFresh = power !== undefined && now.getTime() - Date.parse(power.readAt) < READ_SECONDS * 1_000
  const waiting = { waitFor: 'its management controller', waitSeconds: READ_SECONDS }
  if (isFresh) return { kind: 'pending', decision: waiting }
  if (power?.state === 'off')
    return {
      kind: 'pending',
      decision: { actions: [readPower], ...waiting },
      events: [{ kind: 'power_off_seen', message: 'Its power is off; it is looked at once more.' }],
    }
  if (power !== undefined && power.failures >= POWER_TRIES_MAXIMUM)
    return failed(`Its management controller gives no answer: ${power.detail}`)
  if (power === undefined || power.state === 'unknown')
    return { kind: 'pending', decision: { actions: [readPower], ...waiting } }
  if (power.cuts >= POWER_TRIES_MAXIMUM) return failed(`Its power was cut ${power.cuts} times and is still on.`)
  return {
    kind: 'pending',
    decision: { actions: [cutPower], ...waiting },
    events: [{ kind: 'power_off_requested', message: 'Its management controller is asked to cut the power.' }],
  }
}

/** Two readings far enough apart, because a host that restarts is off for a moment too. */
export const isOffConfirmed = (power: NodePower): boolean =>
  power.state === 'off' && Date.parse(power.readAt) - Date.parse(power.since) >= OFF_SECONDS * 1_000

export const readPower = { do: 'effect', name: 'power', input: { ask: 'state' } } as const
const cutPower = { do: 'effect', name: 'power', input: { ask: 'off' } } as const

/** A guest on shared storage counts as ended once it can no longer write there. Only the storage itself can enforce
 *  that: file locks and lists that agents honour do not stop a running guest. An acknowledgement for an earlier fencing
 *  does not count, because access may have been restored since. Guards in order: not configured, not started,
 *  acknowledged, failed too often, pending. */
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
      kind: 'pending',
      decision: { status: { storageBlock }, ...waiting, waitSeconds: 0 },
      events: [{ kind: 'storage_block_requested', message: 'Its shared storage is asked to refuse it.' }],
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
  return { kind: 'pending', decision: { actions: hasJustFailed(known, now) ? [] : [blockAccess], ...waiting } }
}

const blockAccess = { do: 'effect', name: 'storage', input: { ask: 'take' } } as const
const restoreAccess = { do: 'effect', name: 'storage', input: { ask: 'give' } } as const

/** Restores access that was, or may have been, taken away. Safe only when no guest from before the fencing can still
 *  write, or none of them was started elsewhere; the caller ensures that. */
export function restoreStorageAccess({ node, now }: ReconcileInput): readonly NodeAction[] {
  const { storageBlock } = node.status ?? {}
  return storageBlock === undefined || hasJustFailed(storageBlock, now) ? [] : [restoreAccess]
}

/** A failed request to the storage is not repeated at once. */
const hasJustFailed = ({ failures, readAt }: NodeStorageBlock, now: Date): boolean =>
  failures > 0 && now.getTime() - Date.parse(readAt) < READ_SECONDS * 1_000

/** Two people attest it: the requester and another. A reachable node's own agent takes precedence. */
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
  kind: 'proven',
  evidence: evidence.slice(0, EVIDENCE_LENGTH_MAXIMUM),
})
const failed = (reason: string): MethodResult => ({ kind: 'failed', reason })
