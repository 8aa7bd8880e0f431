/** Upgrades of a node's agent. The system that runs the agents replaces it (a DaemonSet's image, a package, the
 *  supervisor of an embedded cloud); the operation keeps new servers away meanwhile and is done when the new agent
 *  reports. Guests keep running all the time. */
import { isCancelled } from '../../../domain/operations.ts'
import { isPastDeadline } from '../../kit/operation/stanza.ts'
import { isClosed } from './cordon.ts'
import type { Decision } from './decision.ts'
import { HEARTBEAT_AGE_SECONDS_MAXIMUM } from './state.ts'
import type { OperationInput } from './observed.ts'

/** An upgrade that failed or was cancelled is not started again automatically. */
export function upgradeAgent(input: OperationInput): Decision {
  const decision = upgrade(input)
  const isLate = isPastDeadline(input.operation, input.now)
  return decision.outcome === undefined && !isLate
    ? decision
    : { ...decision, status: { desiredAgentVersion: versionOf(input) } }
}

const clearDesiredVersion = { do: 'change', patch: { spec: { desiredAgentVersion: null } } } as const

const versionOf = ({ node, operation }: OperationInput): string =>
  operation.arguments?.['version'] ?? node.spec.desiredAgentVersion ?? ''

/** Steps in order: cordoned, upgraded. A cancelled upgrade is not continued. */
function upgrade(input: OperationInput): Decision {
  const { node, observed, operation } = input
  const version = versionOf(input)
  if (isCancelled(operation))
    return {
      step: 'upgraded',
      outcome: 'cancelled',
      ...(node.spec.desiredAgentVersion === version ? { actions: [clearDesiredVersion] } : {}),
    }
  if (!isClosed(observed)) return { step: 'cordoned', waitFor: 'placement to leave the node out' }
  const isAlive = observed.heartbeat !== undefined && observed.heartbeat.ageSeconds < HEARTBEAT_AGE_SECONDS_MAXIMUM
  if (isAlive && observed.report?.agentVersion === version) {
    return {
      step: 'upgraded',
      outcome: 'succeeded',
      events: [{ kind: 'agent_upgraded', message: `The agent is of version ${version}.`, data: { version } }],
    }
  }
  const before = observed.report?.agentVersion ?? ''
  return {
    step: 'upgraded',
    waitFor: `the agent of version ${version} to report`,
    events: [
      {
        kind: 'agent_awaited',
        message: `Replace the agent of ${node.metadata.name} with version ${version}; it is of version ${before} now.`,
        data: { version, version_before: before },
      },
    ],
  }
}
