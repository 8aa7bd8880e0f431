/** One turn of a node: what shall be done, and how that looks to people. `toActions` is the only place where a decision
 *  becomes status,
 *  conditions and operation progress. */
import type { NodeState } from '../../domain/node-rules.ts'
import type { Action } from '../../kit/reconcile/action.ts'
import type { NodeStatus } from '../../resources/node/index.ts'
import type { OperationDecision } from '../operation/decision.ts'
import { type Health, healthConditions } from '../health.ts'
import { heartbeatCheckSeconds, mirrorActions, type NodeStateReport, reportedStatus, stateOf } from './state.ts'
import { activeOperation } from '../operation/stanza.ts'
import { hasBegun, type ReconcileInput } from './observed.ts'

export interface Decision extends OperationDecision {
  /** Instead of what its heartbeat and its spec say. */
  readonly state?: NodeStateReport
  readonly status?: Partial<Record<keyof NodeStatus, unknown>>
}

/** A cordoned node is as its operator wants it. */
const HEALTH: Partial<Readonly<Record<NodeState, Health>>> = {
  provisioning: 'reconciling',
  draining: 'reconciling',
  unreachable: 'stalled',
  fencing: 'reconciling',
  fenced: 'stalled',
}
const ERROR_LENGTH_MAXIMUM = 1_024

/** Ends with the status, the conditions and how long to wait. */
export function toActions(input: ReconcileInput, decision: Decision): Action[] {
  const { node, observed } = input
  const operation = activeOperation(node)
  const { state, reason, detail } = decision.state ?? stateOf(node, observed)
  const { step = 'done', outcome, error, events } = decision
  const isAtWork = operation !== undefined && outcome === undefined
  const mirror = mirrorActions(node, observed, state === 'ready')
  const waitSeconds = Math.min(
    heartbeatCheckSeconds(observed),
    decision.waitSeconds ?? Number.POSITIVE_INFINITY,
    mirror.length === 0 ? Number.POSITIVE_INFINITY : 1,
  )
  return [
    ...mirror,
    ...(operation === undefined || hasBegun(node, operation) ? [] : [auditOf(operation)]),
    ...(decision.actions ?? []),
    ...(operation === undefined
      ? []
      : [
          {
            do: 'operation',
            id: operation.id,
            step,
            ...(outcome === undefined ? {} : { outcome }),
            ...(error === undefined ? {} : { error: error.slice(0, ERROR_LENGTH_MAXIMUM) }),
            ...(events === undefined ? {} : { events }),
          } as const,
        ]),
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
    { do: 'wait', seconds: waitSeconds, for: decision.waitFor ?? 'a heartbeat' },
  ]
}

/** The entry of an operation in the operators' log; free when the request that asked has written it. */
const auditOf = ({
  kind,
  actor,
  requestId,
}: {
  readonly kind: string
  readonly actor: string
  readonly requestId: string
}): Action => ({ do: 'effect', name: 'audit', input: { action: kind, actor, requestId } })

/** At rest, and once it has joined, what the spec says has been brought about. The end of an operation says only what
 *  that one has brought about: what was
 *  edited meanwhile gets its own. */
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
