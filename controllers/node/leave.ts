/** A node that was deleted takes nothing new, and goes when nothing is left on it: with its namespace go its agent's access and report. */
import { Namespace } from '../../kit/kube/object.ts'
import type { Action } from '../../kit/reconcile/action.ts'
import { nodeNamespace } from '../../resources/instance.ts'
import { healthConditions } from '../health.ts'
import { activeOperation, type Turn } from './seen.ts'

const LOOK_SECONDS = 10

/** Guards in order: nothing is on it any more, something is. */
export function leave({ node, seen: { mirror } }: Turn): readonly Action[] {
  const { name } = node.metadata
  const operation = activeOperation(node)
  const forget: Action = { do: 'effect', name: 'forget', input: { node: name } }
  const isEmpty = mirror === undefined || (mirror.used.cores === 0 && mirror.used.memoryMebibytes === 0 && mirror.used.storageGibibytes === 0)
  const cancel: readonly Action[] = operation === undefined ? [] : [{ do: 'operation', id: operation.id, step: node.status?.operation?.step ?? 'done', outcome: 'cancelled' }]
  if (isEmpty) {
    return [
      ...cancel, ...(mirror === undefined ? [] : [forget]), { do: 'status', status: { state: 'retired', stateDetail: undefined }, conditions: healthConditions('reconciling', 'Leaving', '') },
      { do: 'remove', type: Namespace, key: { name: nodeNamespace(name) } }, { do: 'finalized' },
    ]
  }
  const detail = 'Servers are still placed on it; it goes when they are gone.'
  return [
    ...cancel, ...(mirror.isSchedulable ? [forget] : []), { do: 'status', status: { stateDetail: detail }, conditions: healthConditions('reconciling', 'Leaving', detail) },
    { do: 'wait', seconds: LOOK_SECONDS, for: 'its servers to go' },
  ]
}
