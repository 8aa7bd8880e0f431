/** A node that joins: its namespace and its agent's access exist, and its agent has reported. */
import { isCancelled } from '../../../domain/operations.ts'
import type { Decision } from './decision.ts'
import { HEARTBEAT_AGE_SECONDS_MAXIMUM } from './state.ts'
import { isCompute, type OperationInput } from './observed.ts'

/** Steps in order: access, reported, placeable. */
export function provision({ node, observed, operation }: OperationInput): Decision {
  if (isCancelled(operation)) return { step: 'access', outcome: 'cancelled' }
  if (!observed.hasAccess) return { step: 'access', waitFor: 'the access of its agent' }
  const isHeard =
    observed.report !== undefined &&
    observed.heartbeat !== undefined &&
    observed.heartbeat.ageSeconds < HEARTBEAT_AGE_SECONDS_MAXIMUM
  if (!isHeard) return { step: 'reported', waitFor: 'its agent to report' }
  if (observed.mirror === undefined && isCompute(node))
    return { step: 'placeable', waitFor: 'placement to learn of the node' }
  const { report } = observed
  const data = {
    agent_version: report?.agentVersion ?? '',
    hypervisor: report?.hypervisor ?? '',
    boot_id: report?.bootId ?? '',
  }
  return {
    step: 'placeable',
    outcome: 'succeeded',
    events: [{ kind: 'joined', message: `${node.metadata.name} has joined the zone ${node.spec.zone}.`, data }],
  }
}
