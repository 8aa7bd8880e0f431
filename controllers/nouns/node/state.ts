/** Whether a node is alive, what its agent reports about the host, and the mirror in PostgreSQL that placement
 *  reads. */
import { isDeepStrictEqual } from 'node:util'
import type { NodeState } from '../../../domain/node/rules.ts'
import { isSameRoom, NO_ROOM, offeredRoom } from '../../../domain/node/placement.ts'
import type { NodeAction } from './actions.ts'
import { BACKUPS_FEATURE } from '../../../resources/backup-job/index.ts'
import type { NodeFence, NodeStatus } from '../../../resources/node/index.ts'
import { present } from '../../kit/operation/decision.ts'
import { activeOperation } from '../../kit/operation/stanza.ts'
import { isCompute, type NodeObject, type Observed } from './observed.ts'

const HEARTBEAT_SECONDS = 5
/** Three missed heartbeats. */
export const HEARTBEAT_AGE_SECONDS_MAXIMUM = 15
/** A node without a first heartbeat is checked more often, so that it accepts servers soon after it joined. */
const FIRST_HEARTBEAT_CHECK_SECONDS = 1

export interface NodeStateReport {
  readonly state: NodeState
  readonly reason: string
  readonly detail: string
}

const UNREACHABLE_STATES: readonly (NodeState | undefined)[] = ['unreachable', 'fencing', 'fenced']

/** The agent renews its heartbeat. Silence is counted from the time at which this process began to look: until it has
 *  seen a renewal, the recorded state stays. */
export const isReachable = ({ status }: NodeObject, { heartbeat, report }: Observed): boolean =>
  heartbeat !== undefined &&
  report !== undefined &&
  heartbeat.ageSeconds < HEARTBEAT_AGE_SECONDS_MAXIMUM &&
  !(UNREACHABLE_STATES.includes(status?.state) && heartbeat.renewedAt === status?.lastSeenAt)

/** A fenced node has returned: with another boot than the one that was proven to have ended, and without a guest. */
export const hasReturned = (node: NodeObject, observed: Observed): boolean =>
  node.status?.fence !== undefined &&
  isReachable(node, observed) &&
  observed.report?.bootId !== node.status.fence.bootId &&
  observed.report?.guestCount === 0

/** It joins again: it has returned, and shared storage grants it access as before. */
export const mayRejoin = (node: NodeObject, observed: Observed): boolean =>
  hasReturned(node, observed) && node.status?.storageBlock === undefined

/** The state of a node whose end is proven, for people. */
export const fencedState = ({ evidence }: NodeFence): NodeStateReport => ({
  state: 'fenced',
  reason: 'Fenced',
  detail: `${evidence} It joins again when it has come back with another boot and without guests.`,
})

/** Guards in order: fenced, no heartbeat ever, silent, at work, kept empty, cordoned. */
export function nodeState(node: NodeObject, observed: Observed): NodeStateReport {
  const { status } = node
  const { heartbeat, report } = observed
  if (status?.fence !== undefined) {
    if (mayRejoin(node, observed))
      return { state: 'provisioning', reason: 'Returned', detail: 'It has come back, and joins again.' }
    return hasReturned(node, observed)
      ? {
          state: 'fenced',
          reason: 'Blocked',
          detail: [
            'It has come back, and waits for its shared storage to serve it again.',
            ...present(status.storageBlock?.detail).filter((text) => text !== ''),
          ].join(' '),
        }
      : fencedState(status.fence)
  }
  const wasAlive = status?.state !== undefined && status.state !== 'provisioning'
  if (heartbeat === undefined || report === undefined) {
    return wasAlive
      ? { state: 'unreachable', reason: 'Silent', detail: 'The agent has withdrawn its report.' }
      : { state: 'provisioning', reason: 'NoAgent', detail: 'The agent has not reported yet.' }
  }
  if (heartbeat.ageSeconds >= HEARTBEAT_AGE_SECONDS_MAXIMUM)
    return {
      state: 'unreachable',
      reason: 'Silent',
      detail: `No heartbeat for ${HEARTBEAT_AGE_SECONDS_MAXIMUM} seconds.`,
    }
  if (!isReachable(node, observed))
    return {
      state: 'unreachable',
      reason: 'Silent',
      detail: status?.state === 'unreachable' ? (status.stateDetail ?? '') : '',
    }
  return reachableState(node)
}

function reachableState(node: NodeObject): NodeStateReport {
  const { spec, status } = node
  const kind = activeOperation(node)?.kind
  if (kind === 'node.drain' || kind === 'node.maintenance')
    return { state: 'draining', reason: 'Draining', detail: 'Its servers are being moved away.' }
  if (kind === 'storage.drain_host')
    return { state: 'draining', reason: 'Draining', detail: 'Its storages are being moved away.' }
  if (spec.isInMaintenance === true && status?.isInMaintenance === true)
    return { state: 'maintenance', reason: 'Empty', detail: 'Empty, and takes no servers until it is uncordoned.' }
  if (kind === 'node.agent_upgrade')
    return { state: 'cordoned', reason: 'AgentUpgrade', detail: 'Takes no new servers while its agent is replaced.' }
  return spec.isCordoned
    ? { state: 'cordoned', reason: 'Cordoned', detail: 'Takes no new servers.' }
    : { state: 'ready', reason: 'Heard', detail: '' }
}

/** The agent's report about its host. The time of the last heartbeat is written when the node falls silent, never while
 *  it is healthy. */
export function reportedStatus(
  { status }: NodeObject,
  { report, heartbeat }: Observed,
  state: NodeState,
): Partial<Record<keyof NodeStatus, unknown>> {
  return {
    ...(report === undefined
      ? {}
      : {
          logicalCpus: report.logicalCpus,
          memoryMebibytes: report.memoryMebibytes,
          storageGibibytes: report.storageGibibytes,
          agentVersion: report.agentVersion,
          hypervisor: report.hypervisor,
          pools: report.pools,
          bootId: report.bootId,
          endpoint: report.endpoint,
        }),
    lastSeenAt: UNREACHABLE_STATES.includes(state) ? (heartbeat?.renewedAt ?? status?.lastSeenAt) : undefined,
  }
}

/** The mirror is created at the first heartbeat, so that a node accepts servers as soon as placement has it. From then
 *  on it follows the node; a node that is no longer for servers keeps those that it has. A node that was given to an
 *  account first says so in its object. */
export function mirrorActions(
  node: NodeObject,
  { report, heartbeat, mirror, dedication, forgotten }: Observed,
  isReady: boolean,
): readonly NodeAction[] {
  if (dedication !== undefined && node.spec.dedicatedAccountId !== dedication)
    return [{ do: 'change', patch: { spec: { dedicatedAccountId: dedication } } }]
  if (mirror === undefined && (report === undefined || heartbeat === undefined || !isCompute(node))) return []
  const { spec, metadata } = node
  const total =
    report === undefined
      ? mirror?.total
      : offeredRoom({
          ...report,
          cpuOvercommit: spec.cpuOvercommit,
          reservedMemoryMebibytes: spec.reservedMemoryMebibytes,
        })
  if (total === undefined) return []
  const hasBackups = report === undefined ? mirror?.hasBackups === true : report.features.includes(BACKUPS_FEATURE)
  const wanted = {
    node: metadata.name,
    zone: spec.zone,
    rack: spec.rack,
    cpuPool: spec.cpuPool ?? null,
    dedicatedAccountId: spec.dedicatedAccountId ?? null,
    isSchedulable: isReady && isCompute(node),
    ...(hasBackups ? { hasBackups } : {}),
    total,
  }
  const { used: _used, forgotten: counted = NO_ROOM, ...current } = mirror ?? { used: undefined }
  return isDeepStrictEqual(current, wanted) && dedication === undefined && isSameRoom(counted, forgotten)
    ? []
    : [{ do: 'effect', name: 'mirror', input: wanted }]
}

/** When the node must be checked again for its next heartbeat, or for the lack of one. */
export const heartbeatCheckSeconds = ({ heartbeat }: Observed): number =>
  heartbeat === undefined
    ? FIRST_HEARTBEAT_CHECK_SECONDS
    : Math.max(1, Math.min(HEARTBEAT_SECONDS, HEARTBEAT_AGE_SECONDS_MAXIMUM - heartbeat.ageSeconds))
