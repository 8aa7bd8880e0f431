/** The node's plan: its namespace, the agent's access, whether it is alive, and its mirror in PostgreSQL that placement reads. */
import { isDeepStrictEqual } from 'node:util'
import { type Candidate, offeredRoom } from '../../domain/placement.ts'
import { type KubeObject, Namespace } from '../../kit/kube/object.ts'
import type { Action } from '../../kit/reconcile/action.ts'
import { nodeNamespace, type NodeReportSpec } from '../../resources/instance.ts'
import type { NodeSpec, NodeStatus } from '../../resources/platform.ts'
import { type Health, healthConditions } from '../health.ts'

export type NodeObject = KubeObject<NodeSpec, NodeStatus>

export interface Seen {
  readonly hasNamespace: boolean
  readonly hasAccess: boolean
  readonly report: NodeReportSpec | undefined
  readonly heartbeat: Heartbeat | undefined
  /** The node as PostgreSQL has it; undefined when it has not. */
  readonly mirror: Candidate | undefined
}

export interface Heartbeat {
  /** As the agent wrote it; shown to people only. */
  readonly renewedAt: string | undefined
  /** How long no renewal was seen, on this process's own clock. */
  readonly silentSeconds: number
}

export const HEARTBEAT_SECONDS = 5
/** A node whose agent was never heard is looked at more often, so that it takes servers soon after it came. */
const UNHEARD_SECONDS = 1
/** Three missed heartbeats. */
export const SILENT_SECONDS_MAXIMUM = 15

/** Guards in order: leaving, namespace, access, alive or not; the mirror follows in every case. */
export function plan(node: NodeObject, seen: Seen): readonly Action[] {
  const { metadata } = node
  const namespace = nodeNamespace(metadata.name)
  if (metadata.deletionTimestamp !== undefined) return leave(node, seen)
  if (!seen.hasNamespace) return [{ do: 'ensure', type: Namespace, draft: { metadata: { name: namespace }, spec: undefined } }]
  const access: readonly Action[] = seen.hasAccess ? [] : [{ do: 'effect', name: 'grant', input: { namespace } }]
  const { state, reason, detail } = lifeOf(node, seen)
  return [
    ...access,
    ...mirrored(node, seen, state === 'ready'),
    { do: 'status', status: { ...reported(node, seen, state), state, stateDetail: detail === '' ? undefined : detail }, conditions: healthConditions(HEALTH[state] ?? 'ready', reason, detail) },
    { do: 'wait', seconds: seen.heartbeat === undefined ? UNHEARD_SECONDS : Math.max(1, Math.min(HEARTBEAT_SECONDS, SILENT_SECONDS_MAXIMUM - seen.heartbeat.silentSeconds)), for: 'a heartbeat' },
  ]
}

/** A cordoned node is as its operator wants it. */
const HEALTH: Partial<Readonly<Record<Life['state'], Health>>> = { provisioning: 'reconciling', unreachable: 'stalled' }

interface Life {
  readonly state: NonNullable<NodeStatus['state']>
  readonly reason: string
  readonly detail: string
}

function lifeOf({ spec, status }: NodeObject, { heartbeat, report }: Seen): Life {
  const wasAlive = status?.state !== undefined && status.state !== 'provisioning'
  if (heartbeat === undefined || report === undefined) {
    return wasAlive ? { state: 'unreachable', reason: 'Silent', detail: 'The agent has withdrawn its report.' } : { state: 'provisioning', reason: 'NoAgent', detail: 'The agent has not reported yet.' }
  }
  if (heartbeat.silentSeconds >= SILENT_SECONDS_MAXIMUM) return { state: 'unreachable', reason: 'Silent', detail: `No heartbeat for ${SILENT_SECONDS_MAXIMUM} seconds.` }
  // Silence is counted from when this process began to look: until it has heard the agent, what was known before stands.
  if (status?.state === 'unreachable' && heartbeat.renewedAt === status.lastSeenAt) return { state: 'unreachable', reason: 'Silent', detail: status.stateDetail ?? '' }
  return spec.isCordoned ? { state: 'cordoned', reason: 'Cordoned', detail: 'Takes no new servers.' } : { state: 'ready', reason: 'Heard', detail: '' }
}

/** What the agent says of its host. The time of the last heartbeat is written when the node falls silent, never while it is well. */
function reported({ status }: NodeObject, { report, heartbeat }: Seen, state: Life['state']): Partial<Record<keyof NodeStatus, unknown>> {
  return {
    ...(report === undefined ? {} : {
      logicalCpus: report.logicalCpus, memoryMebibytes: report.memoryMebibytes, storageGibibytes: report.storageGibibytes, agentVersion: report.agentVersion,
      hypervisor: report.hypervisor, bootId: report.bootId, endpoint: report.endpoint,
    }),
    lastSeenAt: state === 'unreachable' ? heartbeat?.renewedAt ?? status?.lastSeenAt : undefined,
  }
}

/** The mirror is made when the agent first reports, and follows from then on. */
function mirrored(node: NodeObject, { report, mirror }: Seen, isSchedulable: boolean): readonly Action[] {
  if (report === undefined && mirror === undefined) return []
  const { spec, metadata } = node
  const wanted = {
    node: metadata.name, zone: spec.zone, rack: spec.rack, cpuPool: spec.cpuPool ?? null, dedicatedAccountId: spec.dedicatedAccountId ?? null, isSchedulable,
    total: report === undefined ? mirror?.total : offeredRoom({ ...report, cpuOvercommit: spec.cpuOvercommit, reservedMemoryMebibytes: spec.reservedMemoryMebibytes }),
  }
  const { used: _used, ...current } = mirror ?? { used: undefined }
  return isDeepStrictEqual(current, wanted) ? [] : [{ do: 'effect', name: 'mirror', input: wanted }]
}

/** A node that is removed takes nothing new, and goes when nothing is left on it. */
function leave({ metadata }: NodeObject, { mirror }: Seen): readonly Action[] {
  const forget: Action = { do: 'effect', name: 'forget', input: { node: metadata.name } }
  const isEmpty = mirror === undefined || (mirror.used.cores === 0 && mirror.used.memoryMebibytes === 0 && mirror.used.storageGibibytes === 0)
  if (isEmpty) return [...(mirror === undefined ? [] : [forget]), { do: 'remove', type: Namespace, key: { name: nodeNamespace(metadata.name) } }, { do: 'finalized' }]
  const detail = 'Servers are still placed on it; it goes when they are gone.'
  return [...(mirror.isSchedulable ? [forget] : []), { do: 'status', status: { stateDetail: detail }, conditions: healthConditions('reconciling', 'Leaving', detail) }, { do: 'wait', seconds: 10, for: 'its servers to go' }]
}
