/** What a fenced node has lost lives on elsewhere: its servers are told to recover, those first that were running and
 *  shall, then the oldest; and only so many at a time, so that where room is short it goes to them in that order. A
 *  server whose disk is on the lost host alone stays, and runs again when the host comes back. */
import { Secret } from '../../kit/kube/object.ts'
import type { NodeAction } from './actions.ts'
import { AGENT_ACCESS_SECRET_NAME, nodeNamespace } from '../../resources/instance/index.ts'
import { activeOperation } from '../operation/stanza.ts'
import type { Decision } from './decision.ts'
import { restoreStorageAccess } from './fence.ts'
import { hasReturned, mayRejoin } from './state.ts'
import { startServerOperation } from './server-operation.ts'
import type { TenantServer, NodeObject, ReconcileInput } from './observed.ts'
import { FENCING_ACTOR, removeObservation } from './unreachable.ts'

/** So many servers of one node are brought elsewhere at once. */
export const RECOVERIES_MAXIMUM = 4
/** A recovery that failed, for want of room above all, is tried again. */
const RECOVERY_RETRY_SECONDS = 60
const LOOK_SECONDS = 5

/** The rule of a fenced node. */
export function recovery(input: ReconcileInput): Decision {
  const { node, observed, now } = input
  const { fence } = node.status ?? {}
  if (fence === undefined) return {}
  if (mayRejoin(node, observed)) return rejoin(node.metadata.name)
  if (hasReturned(node, observed))
    return {
      actions: restoreStorageAccess(input),
      waitFor: 'its shared storage to serve it again',
      waitSeconds: LOOK_SECONDS,
    }
  const lost = observed.guests.filter(
    ({ isArriving, isOnPool, server }) =>
      !isArriving && isOnPool && server !== undefined && server.metadata.deletionTimestamp === undefined,
  )
  const underWay = lost.filter(isRecovering).length
  const due = lost.filter((guest) => !isBusy(guest) && !hasJustFailed(guest, fence.at, now)).sort(byUrgency)
  const isUrgentWorkLeft = lost.some((guest) => isUrgent(guest) && !hasJustFailed(guest, fence.at, now))
  const next = due
    .filter((guest) => isUrgent(guest) || !isUrgentWorkLeft)
    .slice(0, Math.max(0, RECOVERIES_MAXIMUM - underWay))
  const orders = next.map((guest) => recover(guest, node.metadata.name, fence.operationId))
  return {
    actions: [...observed.observations.map(removeObservation), ...releaseDeleted(node, observed), ...orders],
    waitFor: 'its servers to live elsewhere',
    waitSeconds: LOOK_SECONDS,
  }
}

/** What is deleted on a lost node goes without its agent's word: nothing of it can be there any more. Its disks are,
 *  until it is back. */
const releaseDeleted = (
  { metadata, status }: NodeObject,
  { blockedDeletions }: ReconcileInput['observed'],
): readonly NodeAction[] =>
  blockedDeletions.length === 0
    ? []
    : [
        {
          do: 'effect',
          name: 'vacate',
          input: { namespace: nodeNamespace(metadata.name), bootId: status?.fence?.bootId ?? '', blockedDeletions },
        },
      ]

const recover = ({ namespace, serverId }: TenantServer, lostNode: string, fenceOperationId: string): NodeAction =>
  startServerOperation({
    namespace,
    serverId,
    kind: 'server.recover',
    actor: FENCING_ACTOR,
    arguments: { lost_node_id: lostNode, fence_operation_id: fenceOperationId },
  })

/** Whatever knew the token by which the lost host was let in is not let in with it again. */
const rejoin = (node: string): Decision => ({
  actions: [{ do: 'remove', type: Secret, key: { namespace: nodeNamespace(node), name: AGENT_ACCESS_SECRET_NAME } }],
  status: { fence: undefined, power: undefined },
})

const isBusy = ({ server }: TenantServer): boolean => server !== undefined && activeOperation(server) !== undefined
const isRecovering = ({ server }: TenantServer): boolean =>
  server !== undefined && activeOperation(server)?.kind === 'server.recover'

/** It was running, and its owner wants it to. */
const isUrgent = ({ server }: TenantServer): boolean =>
  server?.spec.haPolicy === 'restart' && server.spec.desiredPower === 'running'

const byUrgency = (one: TenantServer, other: TenantServer): number =>
  Number(isUrgent(other)) - Number(isUrgent(one)) ||
  createdAt(one).localeCompare(createdAt(other)) ||
  one.serverId.localeCompare(other.serverId)
const createdAt = ({ server }: TenantServer): string => server?.metadata.creationTimestamp ?? ''

function hasJustFailed({ server }: TenantServer, fencedAt: string, now: Date): boolean {
  const last = server?.status?.operation
  return (
    last?.kind === 'server.recover' &&
    last.status === 'failed' &&
    last.createdAt >= fencedAt &&
    now.getTime() - Date.parse(last.finishedAt ?? last.createdAt) < RECOVERY_RETRY_SECONDS * 1_000
  )
}
