/** What a fenced node has lost lives on elsewhere: its servers are told to recover, those first that were running and
 *  shall, then the
 *  oldest; and only so many at a time, so that where room is short it goes to them in that order. A server whose disk
 *  is on the lost host
 *  alone stays, and runs again when the host comes back. */
import { Secret } from '../../kit/kube/object.ts'
import type { Action } from '../../kit/reconcile/action.ts'
import { AGENT_ACCESS_SECRET_NAME, nodeNamespace } from '../../resources/instance/index.ts'
import { activeStanza } from '../operation/stanza.ts'
import type { Decision } from './decision.ts'
import { accessGivenBack } from './fence.ts'
import { hasReturned, isWelcome } from './state.ts'
import { order } from './server-operation.ts'
import type { Guest, NodeObject, Turn } from './observed.ts'
import { FENCING_ACTOR, withdraw } from './unreachable.ts'

/** So many servers of one node are brought elsewhere at once. */
export const RECOVERIES_MAXIMUM = 4
/** A recovery that failed, for want of room above all, is tried again. */
const RECOVER_AGAIN_SECONDS = 60
const LOOK_SECONDS = 5

/** The rule of a fenced node. */
export function recovery(turn: Turn): Decision {
  const { node, seen, now } = turn
  const { fence } = node.status ?? {}
  if (fence === undefined) return {}
  if (isWelcome(node, seen)) return rejoin(node.metadata.name)
  if (hasReturned(node, seen))
    return {
      actions: accessGivenBack(turn),
      waitFor: 'its shared storage to serve it again',
      waitSeconds: LOOK_SECONDS,
    }
  const lost = seen.guests.filter(
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
    actions: [...seen.observations.map(withdraw), ...vacated(node, seen), ...orders],
    waitFor: 'its servers to live elsewhere',
    waitSeconds: LOOK_SECONDS,
  }
}

/** What is deleted on a lost node goes without its agent's word: nothing of it can be there any more. Its disks are,
 *  until it is back. */
const vacated = ({ metadata, status }: NodeObject, { stuck }: Turn['seen']): readonly Action[] =>
  stuck.length === 0
    ? []
    : [
        {
          do: 'effect',
          name: 'vacate',
          input: { namespace: nodeNamespace(metadata.name), bootId: status?.fence?.bootId ?? '', stuck },
        },
      ]

const recover = ({ namespace, serverId }: Guest, lostNode: string, fenceOperationId: string): Action =>
  order({
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

const isBusy = ({ server }: Guest): boolean => server !== undefined && activeStanza(server) !== undefined
const isRecovering = ({ server }: Guest): boolean =>
  server !== undefined && activeStanza(server)?.kind === 'server.recover'

/** It was running, and its owner wants it to. */
const isUrgent = ({ server }: Guest): boolean =>
  server?.spec.haPolicy === 'restart' && server.spec.desiredPower === 'running'

const byUrgency = (one: Guest, other: Guest): number =>
  Number(isUrgent(other)) - Number(isUrgent(one)) ||
  createdAt(one).localeCompare(createdAt(other)) ||
  one.serverId.localeCompare(other.serverId)
const createdAt = ({ server }: Guest): string => server?.metadata.creationTimestamp ?? ''

function hasJustFailed({ server }: Guest, fencedAt: string, now: Date): boolean {
  const last = server?.status?.operation
  return (
    last?.kind === 'server.recover' &&
    last.status === 'failed' &&
    last.createdAt >= fencedAt &&
    now.getTime() - Date.parse(last.finishedAt ?? last.createdAt) < RECOVER_AGAIN_SECONDS * 1_000
  )
}
