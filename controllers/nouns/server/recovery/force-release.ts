/** server.force_release: removes a server whose node will not return. Its objects in that node's namespace are removed
 *  without the agent when the node was fenced. When two people attest that the host is lost, the guest's object stays
 *  deleted, and nothing waits for it: should the host return, the deleted object makes its agent end the guest. */
import { type KubeObject } from '../../../../kit/kube/object.ts'
import {
  type InstanceSpec,
  NODE_REPORT_NAME,
  nodeNamespace,
  nodeOf,
  NodeReport,
} from '../../../../resources/instance/index.ts'
import { Node } from '../../../../resources/node/index.ts'
import { removeAgentFinalizer } from '../../../fencing/agent-finalizer.ts'
import type { EffectOn } from '../../../kit/effects.ts'
import type { Parts } from '../../../kit/parts.ts'
import type { LostNode } from '../actions.ts'
import type { Decision, OperationInput } from '../decision.ts'
import { uidOf } from '../drafts.ts'
import { removal } from '../removal.ts'

const RECHECK_SECONDS = 2

/** A deletion that does not wait for the lost node. */
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
    waitSeconds: RECHECK_SECONDS,
  }
}

/** A deleted guest that its lost node ends when it returns, and that nothing waits for: two people attested that the
 *  host is lost, or it lost its shared storage and the server continues elsewhere. */
export function isGuestLeftToItsNode(
  caches: Parts['caches'],
  server: Pick<OperationInput['server'], 'metadata' | 'spec'>,
  instance: KubeObject<InstanceSpec>,
): boolean {
  if (instance.metadata.deletionTimestamp === undefined) return false
  const { kind, arguments: { attest, lost_node_id: lost } = {} } = server.spec.operation ?? {}
  if (kind === 'server.force_release') return attest !== undefined && lost === nodeOf(instance)
  const { fence } = caches.of(Node).get({ name: nodeOf(instance) })?.status ?? {}
  return (
    fence?.method === 'storage_block' && kind !== 'server.delete' && server.metadata.deletionTimestamp === undefined
  )
}

/** Removes the agent's finalizer only from deleted objects, and only while the node is lost: a node that has returned
 *  removes it itself. */
export const forceReleaseEffect =
  ({ store }: Pick<Parts, 'store'>): EffectOn<LostNode, unknown, unknown> =>
  async (lost) => {
    if (!(await isNodeLost(store, lost))) return undefined
    const namespace = nodeNamespace(lost.node)
    if (!lost.isAttested || (await isNodeLost(store, { ...lost, isAttested: false })))
      await removeAgentFinalizer(store, 'Instance', { namespace, name: lost.instance })
    if (lost.volume !== undefined) await removeAgentFinalizer(store, 'Volume', { namespace, name: lost.volume })
    return undefined
  }

async function isNodeLost(store: Parts['store'], { node, isAttested }: LostNode): Promise<boolean> {
  const { status } = (await store.get(Node, { name: node })) ?? {}
  if (isAttested) return status === undefined || ['unreachable', 'fencing', 'fenced'].includes(status.state ?? '')
  // A guest without storage may still answer at its addresses.
  if (status?.fence === undefined || status.fence.method === 'storage_block') return false
  const report = await store.get(NodeReport, { namespace: nodeNamespace(node), name: NODE_REPORT_NAME })
  return (report?.spec.bootId ?? '') === status.fence.bootId
}
