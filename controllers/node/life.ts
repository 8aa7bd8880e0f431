/** Whether a node is alive, what its agent says of the host, and the mirror in PostgreSQL that placement reads. */
import { isDeepStrictEqual } from 'node:util'
import { offeredRoom } from '../../domain/placement.ts'
import type { Action } from '../../kit/reconcile/action.ts'
import type { NodeStatus } from '../../resources/platform.ts'
import { activeOperation, type NodeObject, type NodeState, type Seen } from './seen.ts'

export const HEARTBEAT_SECONDS = 5
/** Three missed heartbeats. */
export const SILENT_SECONDS_MAXIMUM = 15
/** A node whose agent was never heard is looked at more often, so that it takes servers soon after it came. */
const UNHEARD_SECONDS = 1

export interface Life {
  readonly state: NodeState
  readonly reason: string
  readonly detail: string
}

/** Guards in order: never heard, silent, at work, held empty, cordoned. */
export function lifeOf(node: NodeObject, { heartbeat, report }: Seen): Life {
  const { status } = node
  const wasAlive = status?.state !== undefined && status.state !== 'provisioning'
  if (heartbeat === undefined || report === undefined) {
    return wasAlive ? { state: 'unreachable', reason: 'Silent', detail: 'The agent has withdrawn its report.' } : { state: 'provisioning', reason: 'NoAgent', detail: 'The agent has not reported yet.' }
  }
  if (heartbeat.silentSeconds >= SILENT_SECONDS_MAXIMUM) return { state: 'unreachable', reason: 'Silent', detail: `No heartbeat for ${SILENT_SECONDS_MAXIMUM} seconds.` }
  // Silence is counted from when this process began to look: until it has heard the agent, what was known before stands.
  if (status?.state === 'unreachable' && heartbeat.renewedAt === status.lastSeenAt) return { state: 'unreachable', reason: 'Silent', detail: status.stateDetail ?? '' }
  return livelyLifeOf(node)
}

function livelyLifeOf(node: NodeObject): Life {
  const { spec, status } = node
  const kind = activeOperation(node)?.kind
  if (kind === 'node.drain' || kind === 'node.maintenance') return { state: 'draining', reason: 'Draining', detail: 'Its servers are being moved away.' }
  if (spec.isInMaintenance === true && status?.isInMaintenance === true) return { state: 'maintenance', reason: 'Empty', detail: 'Empty, and takes no servers until it is uncordoned.' }
  if (kind === 'node.agent_upgrade') return { state: 'cordoned', reason: 'AgentUpgrade', detail: 'Takes no new servers while its agent is replaced.' }
  return spec.isCordoned ? { state: 'cordoned', reason: 'Cordoned', detail: 'Takes no new servers.' } : { state: 'ready', reason: 'Heard', detail: '' }
}

/** What the agent says of its host. The time of the last heartbeat is written when the node falls silent, never while it is well. */
export function reported({ status }: NodeObject, { report, heartbeat }: Seen, state: NodeState): Partial<Record<keyof NodeStatus, unknown>> {
  return {
    ...(report === undefined ? {} : {
      logicalCpus: report.logicalCpus, memoryMebibytes: report.memoryMebibytes, storageGibibytes: report.storageGibibytes, agentVersion: report.agentVersion,
      hypervisor: report.hypervisor, bootId: report.bootId, endpoint: report.endpoint,
    }),
    lastSeenAt: state === 'unreachable' ? heartbeat?.renewedAt ?? status?.lastSeenAt : undefined,
  }
}

/** The mirror is made when the agent first reports, and follows from then on. */
export function mirrored(node: NodeObject, { report, mirror }: Seen, isSchedulable: boolean): readonly Action[] {
  if (report === undefined && mirror === undefined) return []
  const { spec, metadata } = node
  const wanted = {
    node: metadata.name, zone: spec.zone, rack: spec.rack, cpuPool: spec.cpuPool ?? null, dedicatedAccountId: spec.dedicatedAccountId ?? null, isSchedulable,
    total: report === undefined ? mirror?.total : offeredRoom({ ...report, cpuOvercommit: spec.cpuOvercommit, reservedMemoryMebibytes: spec.reservedMemoryMebibytes }),
  }
  const { used: _used, ...current } = mirror ?? { used: undefined }
  return isDeepStrictEqual(current, wanted) ? [] : [{ do: 'effect', name: 'mirror', input: wanted }]
}

/** When the node must be looked at again to hear its heartbeat, or that there is none. */
export const listenSeconds = ({ heartbeat }: Seen): number =>
  heartbeat === undefined ? UNHEARD_SECONDS : Math.max(1, Math.min(HEARTBEAT_SECONDS, SILENT_SECONDS_MAXIMUM - heartbeat.silentSeconds))
