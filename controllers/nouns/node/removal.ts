/** A deleted node accepts no new servers and is removed once it is empty, with its namespace, which contains its
 *  agent's access and report. Both the claims and the host's own report decide whether it is empty: PostgreSQL may have
 *  lost the claims of what is there. A host that is proven to be off, or attested to be gone, is not asked. Storage
 *  access is restored first, unless the host was fenced and has not returned: its guests may still run, and would write
 *  again. */
import { isSameRoom, NO_ROOM } from '../../../domain/node/placement.ts'
import { Namespace } from '../../../kit/kube/object.ts'
import type { NodeAction } from './actions.ts'
import { nodeNamespace } from '../../../resources/instance/index.ts'
import { healthConditions } from '../../kit/health.ts'
import { restoreStorageAccess } from './fence.ts'
import { releaseDeleted } from './recovery.ts'
import { hasReturned } from './state.ts'
import { activeOperation } from '../../kit/operation/stanza.ts'
import { type ReconcileInput } from './observed.ts'

const RECHECK_SECONDS = 10

/** How long the host's report of what it holds is trusted. */
const HELD_SECONDS = 30

/** Guards in order: no claims but the host holds something, or lacks its storage access; empty; not empty. */
export function remove(input: ReconcileInput): readonly NodeAction[] {
  const { node, observed } = input
  const { mirror } = observed
  const { name } = node.metadata
  const operation = activeOperation(node)
  const forget: NodeAction = { do: 'effect', name: 'forget', input: { node: name } }
  // Only the host itself knows what it holds without a claim.
  const isEmpty = mirror === undefined || isSameRoom(mirror.used, mirror.forgotten ?? NO_ROOM)
  const cancel: readonly NodeAction[] =
    operation === undefined
      ? []
      : [{ do: 'operation', id: operation.id, step: node.status?.operation?.step ?? 'done', outcome: 'cancelled' }]
  const mustRestoreAccess =
    node.status?.storageBlock !== undefined && (node.status.fence === undefined || hasReturned(node, observed))
  const obstacle = isEmpty ? hostObstacle(input) : undefined
  if (obstacle !== undefined)
    return [
      ...cancel,
      ...(mirror?.isSchedulable === true ? [forget] : []),
      ...waiting(obstacle, 'its host to hold nothing'),
    ]
  if (isEmpty && mustRestoreAccess) {
    const detail =
      `Its shared storage is to serve it again before it goes. ${node.status?.storageBlock?.detail ?? ''}`.trim()
    return [...cancel, ...restoreStorageAccess(input), ...waiting(detail, 'its shared storage')]
  }
  if (isEmpty) {
    return [
      ...cancel,
      ...(mirror === undefined ? [] : [forget]),
      ...releaseDeleted(node, observed),
      {
        do: 'status',
        status: { state: 'retired', stateDetail: undefined },
        conditions: healthConditions('reconciling', 'Leaving', ''),
      },
      { do: 'remove', type: Namespace, key: { name: nodeNamespace(name) } },
      { do: 'finalized' },
    ]
  }
  const detail = 'Servers are still placed on it; it is removed when there are none.'
  return [...cancel, ...(mirror.isSchedulable ? [forget] : []), ...waiting(detail, 'its servers to go')]
}

/** Why the host may hold something without claims; undefined when it holds nothing. */
function hostObstacle({ node, observed }: ReconcileInput): string | undefined {
  const { held, report } = observed
  const hasNeverJoined = report === undefined && node.status?.lastSeenAt === undefined
  if (hasNeverJoined || (node.status?.fence !== undefined && !hasReturned(node, observed))) return undefined
  if (held === undefined || held.ageSeconds > HELD_SECONDS)
    return (
      `Its agent has not said within ${HELD_SECONDS} seconds what the host holds. Start it (the newest release says ` +
      'so), or fence the node, by attestation where the host is lost for good.'
    )
  const { guests, volumes, images, unclaimed } = held.counts
  return guests + volumes + images + unclaimed + (held.counts.quarantined ?? 0) === 0
    ? undefined
    : `No server is placed on it, but its host holds ${guests} guests, ${volumes} disks and ${images} images, of ` +
        `which ${unclaimed} have no object. Move or remove them, or fence the node, by attestation where it is lost.`
}

const waiting = (detail: string, waitFor: string): readonly NodeAction[] => [
  { do: 'status', status: { stateDetail: detail }, conditions: healthConditions('reconciling', 'Leaving', detail) },
  { do: 'wait', seconds: RECHECK_SECONDS, for: waitFor },
]
