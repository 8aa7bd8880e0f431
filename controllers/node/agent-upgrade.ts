/** Another version of a node's agent. Who runs the agents replaces it (a DaemonSet's image, a package, the supervisor
 *  of an embedded
 *  cloud); the operation keeps new servers away meanwhile and is done when the new agent reports. Guests go on all the
 *  time. */
import { isCancelled } from '../../domain/operations.ts'
import { isClosed } from './cordon.ts'
import type { Decision } from './decision.ts'
import { SILENT_SECONDS_MAXIMUM } from './state.ts'
import type { Work } from './observed.ts'

/** Also one that failed or was cancelled is not begun again by itself. */
export function upgradeAgent(work: Work): Decision {
  const decision = upgrade(work)
  const isLate = work.now.getTime() >= Date.parse(work.operation.deadlineAt)
  return decision.outcome === undefined && !isLate
    ? decision
    : { ...decision, status: { desiredAgentVersion: versionOf(work) } }
}

const forgetWish = { do: 'change', patch: { spec: { desiredAgentVersion: null } } } as const

const versionOf = ({ node, operation }: Work): string =>
  operation.arguments?.['version'] ?? node.spec.desiredAgentVersion ?? ''

/** Steps in order: cordoned, upgraded. What was cancelled is not wanted any more. */
function upgrade(work: Work): Decision {
  const { node, seen, operation } = work
  const version = versionOf(work)
  if (isCancelled(operation))
    return {
      step: 'upgraded',
      outcome: 'cancelled',
      ...(node.spec.desiredAgentVersion === version ? { actions: [forgetWish] } : {}),
    }
  if (!isClosed(seen)) return { step: 'cordoned', waitFor: 'placement to leave the node out' }
  const isAlive = seen.heartbeat !== undefined && seen.heartbeat.silentSeconds < SILENT_SECONDS_MAXIMUM
  if (isAlive && seen.report?.agentVersion === version) {
    return {
      step: 'upgraded',
      outcome: 'succeeded',
      events: [{ kind: 'agent_upgraded', message: `The agent is of version ${version}.`, data: { version } }],
    }
  }
  const before = seen.report?.agentVersion ?? ''
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
