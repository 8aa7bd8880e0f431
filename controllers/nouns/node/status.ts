/** The only place where a decision about a node becomes status, conditions and operation progress. */
import type { NodeState } from '../../../domain/node/rules.ts'
import type { NodeAction } from './actions.ts'
import { operationActions, waitActions } from '../../kit/operation/decision.ts'
import { type Health, healthConditions } from '../../kit/health.ts'
import { nodeState, heartbeatCheckSeconds, mirrorActions, reportedStatus } from './state.ts'
import { activeOperation } from '../../kit/operation/stanza.ts'
import type { Decision } from './decision.ts'
import type { ReconcileInput } from './observed.ts'
import { recovery } from './recovery.ts'
import { watchReachability } from './unreachable.ts'

/** A cordoned node is in the state that its operator wants. */
const HEALTH: Partial<Readonly<Record<NodeState, Health>>> = {
  provisioning: 'reconciling',
  draining: 'reconciling',
  unreachable: 'stalled',
  fencing: 'reconciling',
  fenced: 'stalled',
}

/** What a node needs regardless of the operation under way is added to the decision. */
export function toActions(input: ReconcileInput, forOperation: Decision): readonly NodeAction[] {
  const { node, observed } = input
  const decision = combined(forOperation, independentOfOperation(input))
  const { state, reason, detail } = decision.state ?? nodeState(node, observed)
  const isAtWork = activeOperation(node) !== undefined && decision.outcome === undefined
  const mirror = mirrorActions(node, observed, state === 'ready')
  const waitSeconds = Math.min(
    heartbeatCheckSeconds(observed),
    decision.waitSeconds ?? Number.POSITIVE_INFINITY,
    mirror.length === 0 ? Number.POSITIVE_INFINITY : 1,
  )
  return [
    ...mirror,
    ...(decision.actions ?? []),
    ...operationActions(node, decision),
    {
      do: 'status',
      status: {
        ...reportedStatus(node, observed, state),
        ...appliedSpec(input, decision),
        ...decision.status,
        state,
        stateDetail: detail === '' ? undefined : detail,
      },
      conditions: healthConditions(HEALTH[state] ?? (isAtWork ? 'reconciling' : 'ready'), reason, detail),
    },
    ...waitActions({ waitFor: 'a heartbeat', ...decision, waitSeconds }),
  ]
}

function independentOfOperation(input: ReconcileInput): Decision {
  if (input.node.status?.fence !== undefined) return recovery(input)
  return activeOperation(input.node)?.kind === 'node.fence' ? {} : watchReachability(input)
}

const combined = (decision: Decision, other: Decision): Decision => ({
  ...decision,
  actions: [...(decision.actions ?? []), ...(other.actions ?? [])],
  status: { ...other.status, ...decision.status },
  waitSeconds: Math.min(
    decision.waitSeconds ?? Number.POSITIVE_INFINITY,
    other.waitSeconds ?? Number.POSITIVE_INFINITY,
  ),
})

/** Without an operation, and once the node has joined, the spec is applied. The end of an operation confirms only what
 *  that operation has applied: edits made meanwhile get their own. */
const appliedSpec = ({ node }: ReconcileInput, { outcome }: Decision): Decision['status'] => {
  const kind = activeOperation(node)?.kind
  const isTrue = kind === undefined || (kind === 'node.provision' && outcome !== undefined)
  return isTrue
    ? {
        isCordoned: node.spec.isCordoned,
        isInMaintenance: node.spec.isInMaintenance === true,
        desiredAgentVersion: node.spec.desiredAgentVersion,
      }
    : {}
}
