/** Decides whether an unreachable node is fenced. Missed heartbeats may mean that the host is dead, that its agent is,
 *  or that only the network to the control plane failed. So other nodes are asked whether they can reach it, and its
 *  management controller whether it has power. The platform fences only a node that is off or that nobody reaches: a
 *  host that answers anyone may still run healthy guests. */
import { replacing } from '../../../kit/kube/merge-patch.ts'
import type { NodeAction } from './actions.ts'
import { nodeNamespace, Observation } from '../../../resources/instance/index.ts'
import { isFenceCapable } from '../../../resources/node/index.ts'
import { activeOperation, derivedStanza } from '../../kit/operation/stanza.ts'
import type { Decision } from './decision.ts'
import { isOffConfirmed, OFF_SECONDS, readPower, restoreStorageAccess } from './fence.ts'
import { isReachable } from './state.ts'
import type { ObservationObject, ReconcileInput } from './observed.ts'

/** Fewer cannot tell a dead host from a failure of their own network. */
const OBSERVERS_MINIMUM = 2
/** Limit of nodes asked, however large the zone. */
export const OBSERVERS_MAXIMUM = 5
const OBSERVATION_INTERVAL_SECONDS = 10
/** Wait after a fencing that found no proof. */
const FENCE_RETRY_SECONDS = 60
export const FENCING_ACTOR = 'system:fencing'

/** The rule of a node that is not fenced: requests observations while it is unreachable. When it is reachable again,
 *  removes them and restores storage access that a failed fencing may have taken away. */
export function watchReachability(input: ReconcileInput): Decision {
  const { node, observed } = input
  if (isReachable(node, observed))
    return {
      actions: [...observed.observations.map(removeObservation), ...restoreStorageAccess(input)],
      ...(node.status?.power === undefined ? {} : { status: { power: undefined } }),
    }
  if (node.status?.state !== 'unreachable') return {}
  return { actions: [...requestObservations(input), ...readPowerWhenDue(input)], waitSeconds: OFF_SECONDS }
}

/** The platform's own request to fence the node; undefined while it has no reason, or could not obtain proof. It
 *  replaces any operation under way on the node, which cannot finish. */
export function dueFence(input: ReconcileInput): NodeAction | undefined {
  const { node, observed, now } = input
  const { status, spec, metadata } = node
  const active = activeOperation(node)
  if (
    isReachable(node, observed) ||
    status?.state !== 'unreachable' ||
    status.fence !== undefined ||
    active?.kind === 'node.fence' ||
    metadata.deletionTimestamp !== undefined
  )
    return undefined
  const last = status.operation
  if (
    last?.kind === 'node.fence' &&
    last.finishedAt !== undefined &&
    now.getTime() - Date.parse(last.finishedAt) < FENCE_RETRY_SECONDS * 1_000
  )
    return undefined
  const reason =
    status.power !== undefined && isOffConfirmed(status.power)
      ? 'Its power is off.'
      : isFenceCapable(spec) && isUnreachableForAll(input)
        ? 'No other node hears it.'
        : undefined
  if (reason === undefined) return undefined
  const stanza = derivedStanza('node.fence', {
    seed: `${metadata.uid ?? ''}/${metadata.generation ?? 0}/${last?.id ?? ''}`,
    actor: FENCING_ACTOR,
    now,
  })
  return {
    do: 'change',
    patch: {
      spec: {
        operation: { ...stanza, arguments: replacing(spec.operation?.arguments ?? {}, { method: 'auto', reason }) },
      },
    },
  }
}

/** More than half of the observers answered recently, and none of them reaches the node. */
function isUnreachableForAll({ observed, now }: ReconcileInput): boolean {
  const answers = observed.observations
    .filter((observation) => isRecent(observation, now))
    .map(({ status }) => status?.answer)
  return (
    answers.length >= OBSERVERS_MINIMUM &&
    answers.every((answer) => answer === 'nothing') &&
    answers.length * 2 > observed.observations.length
  )
}

const isAnswered = ({ spec, status }: ObservationObject): boolean => status?.requestedAt === spec.requestedAt
const isRecent = (observation: ObservationObject, now: Date): boolean =>
  isAnswered(observation) &&
  now.getTime() - Date.parse(observation.spec.requestedAt) < 2 * OBSERVATION_INTERVAL_SECONDS * 1_000

function requestObservations({ node, observed, now }: ReconcileInput): readonly NodeAction[] {
  const endpoint = node.status?.endpoint
  if (endpoint === undefined || observed.observers.length < OBSERVERS_MINIMUM)
    return observed.observations.map(removeObservation)
  const stale = observed.observations.filter(
    ({ metadata }) => !observed.observers.some((observer) => nodeNamespace(observer) === metadata.namespace),
  )
  return [
    ...stale.map(removeObservation),
    ...observed.observers.flatMap((observer): readonly NodeAction[] => {
      const namespace = nodeNamespace(observer)
      const known = observed.observations.find(({ metadata }) => metadata.namespace === namespace)
      if (
        known !== undefined &&
        now.getTime() - Date.parse(known.spec.requestedAt) < OBSERVATION_INTERVAL_SECONDS * 1_000
      )
        return []
      return [
        {
          do: 'ensure',
          type: Observation,
          draft: {
            metadata: { namespace, name: node.metadata.name },
            spec: { endpoint, requestedAt: now.toISOString() },
          },
        },
      ]
    }),
  ]
}

export const removeObservation = ({ metadata: { namespace = '', name } }: ObservationObject): NodeAction => ({
  do: 'remove',
  type: Observation,
  key: { namespace, name },
})

/** Reading the power is harmless, and finds a dead host even where no node could observe it. */
function readPowerWhenDue({ node, now }: ReconcileInput): readonly NodeAction[] {
  const { power } = node.status ?? {}
  const isDue = power === undefined || now.getTime() - Date.parse(power.readAt) >= OFF_SECONDS * 1_000
  return node.spec.bmc !== undefined && isDue ? [readPower] : []
}
