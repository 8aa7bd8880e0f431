/** Recovers the servers of a fenced node elsewhere: first those that should run and are restarted by their policy, then
 *  the oldest. Only a limited number recovers at a time, so that scarce capacity goes to them in that order. A server
 *  whose disk is only on the lost host stays, and runs again when the host returns. */
import { Secret } from '../../../kit/kube/object.ts'
import type { NodeAction } from './actions.ts'
import { AGENT_ACCESS_SECRET_NAME, nodeNamespace } from '../../../resources/instance/index.ts'
import { activeOperation } from '../../kit/operation/stanza.ts'
import type { Decision } from './decision.ts'
import { restoreStorageAccess } from './fence.ts'
import { hasReturned, mayRejoin } from './state.ts'
import { startServerOperation } from '../../kit/platform-operation.ts'
import type { TenantServer, NodeObject, ReconcileInput } from './observed.ts'
import { FENCING_ACTOR, removeObservation } from './unreachable.ts'

/** Limit of servers of one node that recover at a time. */
export const RECOVERIES_MAXIMUM = 4
/** Wait before a failed recovery, mostly for lack of room, is tried again. */
const RECOVERY_RETRY_SECONDS = 60
const RECHECK_SECONDS = 5

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
      waitSeconds: RECHECK_SECONDS,
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
  const recoveries = next.map((guest) => recover(guest, node.metadata.name, fence.operationId))
  return {
    actions: [...observed.observations.map(removeObservation), ...releaseDeleted(node, observed), ...recoveries],
    waitFor: 'its servers to live elsewhere',
    waitSeconds: RECHECK_SECONDS,
  }
}

/** Finishes deletions on a lost node without its agent: nothing runs there any longer. The disks stay on the host until
 *  it returns. */
export const releaseDeleted = (
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
    id: serverId,
    kind: 'server.recover',
    actor: FENCING_ACTOR,
    arguments: { lost_node_id: lostNode, fence_operation_id: fenceOperationId },
  })

/** Removes the agent's access token, so that a copy from before the fencing is not accepted again. */
const rejoin = (node: string): Decision => ({
  actions: [{ do: 'remove', type: Secret, key: { namespace: nodeNamespace(node), name: AGENT_ACCESS_SECRET_NAME } }],
  status: { fence: undefined, power: undefined },
})

const isBusy = ({ server }: TenantServer): boolean => server !== undefined && activeOperation(server) !== undefined
const isRecovering = ({ server }: TenantServer): boolean =>
  server !== undefined && activeOperation(server)?.kind === 'server.recover'

/** Its owner wants it to run, and its policy restarts it. */
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
