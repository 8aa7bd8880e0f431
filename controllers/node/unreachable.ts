/** A node that has fallen silent. Missed heartbeats may mean that the host is dead, that its agent is, or that only the
 *  line to the control plane is cut: other nodes are asked whether they hear it, and its management controller whether
 *  it has power. Only what nobody hears is fenced without a person; a host that answers in any way may run guests in
 *  good health. */
import { replacing } from '../../kit/kube/merge-patch.ts'
import type { NodeAction } from './actions.ts'
import { nodeNamespace, Observation } from '../../resources/instance/index.ts'
import { isFenceCapable } from '../../resources/node/index.ts'
import { activeOperation, derivedStanza } from '../operation/stanza.ts'
import type { Decision } from './decision.ts'
import { isOffConfirmed, OFF_SECONDS, readPower, restoreStorageAccess } from './fence.ts'
import { isReachable } from './state.ts'
import type { ObservationObject, ReconcileInput } from './observed.ts'

/** Fewer cannot tell a dead host from a broken line of their own. */
const OBSERVERS_MINIMUM = 2
/** So many are asked, of however large a zone. */
export const OBSERVERS_MAXIMUM = 5
const OBSERVATION_INTERVAL_SECONDS = 10
/** After a fencing without proof the next begins no earlier. */
const FENCE_RETRY_SECONDS = 60
export const FENCING_ACTOR = 'system:fencing'

/** The rule of a node that is not fenced: asks while it is silent, and takes the questions back when it is heard again,
 *  with what a fencing without proof may have taken of it. */
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

/** The operation that the platform itself asks for; undefined while there is no cause or no way. It takes the place of
 *  whatever else was under way on the node, which cannot come to its end. */
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

/** More than half of those that were asked, and nobody says otherwise. */
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

const isAnswered = ({ spec, status }: ObservationObject): boolean => status?.askedAt === spec.askedAt
const isRecent = (observation: ObservationObject, now: Date): boolean =>
  isAnswered(observation) &&
  now.getTime() - Date.parse(observation.spec.askedAt) < 2 * OBSERVATION_INTERVAL_SECONDS * 1_000

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
      if (known !== undefined && now.getTime() - Date.parse(known.spec.askedAt) < OBSERVATION_INTERVAL_SECONDS * 1_000)
        return []
      return [
        {
          do: 'ensure',
          type: Observation,
          draft: { metadata: { namespace, name: node.metadata.name }, spec: { endpoint, askedAt: now.toISOString() } },
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

/** Looking harms nobody: a host without power is found so even where nobody could observe it. */
function readPowerWhenDue({ node, now }: ReconcileInput): readonly NodeAction[] {
  const { power } = node.status ?? {}
  const isDue = power === undefined || now.getTime() - Date.parse(power.readAt) >= OFF_SECONDS * 1_000
  return node.spec.bmc !== undefined && isDue ? [readPower] : []
}
