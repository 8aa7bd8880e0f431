/** server.force_release: the removal of a server whose node will not come back. What of it is in that node's namespace
 *  goes without the node's word, by the proof that the node was fenced, or because two people attest that the host is
 *  gone. */
import { NODE_REPORT_NAME, nodeNamespace, NodeReport } from '../../../resources/instance/index.ts'
import { Node } from '../../../resources/node/index.ts'
import { removeAgentFinalizer } from '../../fencing/agent-finalizer.ts'
import type { EffectOn } from '../../effects.ts'
import type { Parts } from '../../parts.ts'
import type { LostNode } from '../actions.ts'
import type { Decision, OperationInput } from '../decision.ts'
import { uidOf } from '../drafts.ts'
import { removal } from '../removal.ts'

const LOOK_SECONDS = 2

/** As a deletion, which does not wait for what the lost node holds. */
export function forceRelease(input: OperationInput): Decision {
  const { server, observed, operation } = input
  const decision = removal(input)
  const { lost_node_id: node, attest } = operation.arguments ?? {}
  if (node === undefined || decision.isGone === true) return decision
  const lost: LostNode = {
    node,
    instance: uidOf(server),
    volume: observed.storage === undefined ? undefined : uidOf(observed.storage),
    isAttested: attest !== undefined,
  }
  return {
    ...decision,
    actions: [...(decision.actions ?? []), { do: 'effect', name: 'forceRelease', input: { ...lost } }],
    waitSeconds: LOOK_SECONDS,
  }
}

/** Only what is deleted already is let go, and only while the node is lost: a node that is back lets go by itself. */
export const forceReleaseEffect =
  ({ store }: Pick<Parts, 'store'>): EffectOn<LostNode, unknown, unknown> =>
  async (lost) => {
    if (!(await isNodeLost(store, lost))) return undefined
    const namespace = nodeNamespace(lost.node)
    await removeAgentFinalizer(store, 'Instance', { namespace, name: lost.instance })
    if (lost.volume !== undefined) await removeAgentFinalizer(store, 'Volume', { namespace, name: lost.volume })
    return undefined
  }

async function isNodeLost(store: Parts['store'], { node, isAttested }: LostNode): Promise<boolean> {
  const { status } = (await store.get(Node, { name: node })) ?? {}
  if (isAttested) return status === undefined || ['unreachable', 'fencing', 'fenced'].includes(status.state ?? '')
  // its guest may still answer at its addresses
  if (status?.fence === undefined || status.fence.method === 'storage_block') return false
  const report = await store.get(NodeReport, { namespace: nodeNamespace(node), name: NODE_REPORT_NAME })
  return (report?.spec.bootId ?? '') === status.fence.bootId
}
