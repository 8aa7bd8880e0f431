/** A node that was deleted takes nothing new, and goes when nothing is left on it: with its namespace go its agent's
 *  access and report. Shared storage serves its host again, unless that host was fenced and has not come back: what
 *  runs on it may wait for just that. */
import { Namespace } from '../../kit/kube/object.ts'
import type { NodeAction } from './actions.ts'
import { nodeNamespace } from '../../resources/instance/index.ts'
import { healthConditions } from '../health.ts'
import { restoreStorageAccess } from './fence.ts'
import { hasReturned } from './state.ts'
import { activeOperation } from '../operation/stanza.ts'
import { type ReconcileInput } from './observed.ts'

const LOOK_SECONDS = 10

/** Guards in order: nothing is on it any more but it lacks access that is its own, nothing is on it, something is. */
export function remove(input: ReconcileInput): readonly NodeAction[] {
  const { node, observed } = input
  const { mirror } = observed
  const { name } = node.metadata
  const operation = activeOperation(node)
  const forget: NodeAction = { do: 'effect', name: 'forget', input: { node: name } }
  const isEmpty =
    mirror === undefined ||
    (mirror.used.cores === 0 && mirror.used.memoryMebibytes === 0 && mirror.used.storageGibibytes === 0)
  const cancel: readonly NodeAction[] =
    operation === undefined
      ? []
      : [{ do: 'operation', id: operation.id, step: node.status?.operation?.step ?? 'done', outcome: 'cancelled' }]
  const isOwed =
    node.status?.storageBlock !== undefined && (node.status.fence === undefined || hasReturned(node, observed))
  if (isEmpty && isOwed) {
    const detail =
      `Its shared storage is to serve it again before it goes. ${node.status?.storageBlock?.detail ?? ''}`.trim()
    return [...cancel, ...restoreStorageAccess(input), ...waiting(detail, 'its shared storage')]
  }
  if (isEmpty) {
    return [
      ...cancel,
      ...(mirror === undefined ? [] : [forget]),
      {
        do: 'status',
        status: { state: 'retired', stateDetail: undefined },
        conditions: healthConditions('reconciling', 'Leaving', ''),
      },
      { do: 'remove', type: Namespace, key: { name: nodeNamespace(name) } },
      { do: 'finalized' },
    ]
  }
  const detail = 'Servers are still placed on it; it goes when they are gone.'
  return [...cancel, ...(mirror.isSchedulable ? [forget] : []), ...waiting(detail, 'its servers to go')]
}

const waiting = (detail: string, waitFor: string): readonly NodeAction[] => [
  { do: 'status', status: { stateDetail: detail }, conditions: healthConditions('reconciling', 'Leaving', detail) },
  { do: 'wait', seconds: LOOK_SECONDS, for: waitFor },
]
