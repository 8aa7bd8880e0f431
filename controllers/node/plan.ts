/** The node's plan: pure, synchronous, total. Guards in order: leaving, an operation that another one replaced, its
 *  namespace, its agent's
 *  access, a fencing that is due, an edit without an operation, the operation under way beside what silence or its
 *  fence asks for. */
import type { OperationKind } from '../../domain/operations.ts'
import { Namespace } from '../../kit/kube/object.ts'
import type { Action } from '../../kit/reconcile/action.ts'
import { nodeNamespace } from '../../resources/instance/index.ts'
import { activeOperation, replacedProgress } from '../operation/stanza.ts'
import { adopt, detectEdit } from './direct-edit.ts'
import { upgradeAgent } from './agent-upgrade.ts'
import { cordon, uncordon } from './cordon.ts'
import { type Decision, toActions } from './decision.ts'
import { drain } from './drain.ts'
import { fence } from './fence.ts'
import { remove } from './removal.ts'
import { provision } from './provision.ts'
import { recovery } from './recovery.ts'
import { type NodeObject, type Observed, type ReconcileInput, type OperationInput } from './observed.ts'
import { dueFence, watchReachability } from './unreachable.ts'

const FLOWS: Partial<Record<OperationKind, (input: OperationInput) => Decision>> = {
  'node.cordon': cordon,
  'node.uncordon': uncordon,
  'node.provision': provision,
  'node.drain': drain,
  'node.maintenance': drain,
  'node.agent_upgrade': upgradeAgent,
  'node.fence': fence,
}

/** The node's plan: pure, synchronous, total. Guards in order: leaving, no namespace, an operation that another one
 *  replaced, a fence that is due, an
 *  edit without an operation, and whatever is under way. */
export function plan(node: NodeObject, observed: Observed, now: Date): readonly Action[] {
  const input: ReconcileInput = { node, observed, now }
  const namespace = nodeNamespace(node.metadata.name)
  if (node.metadata.deletionTimestamp !== undefined) return remove(input)
  if (!observed.hasNamespace)
    return [{ do: 'ensure', type: Namespace, draft: { metadata: { name: namespace }, spec: undefined } }]
  const replaced = replacedProgress(node)
  if (replaced !== undefined) return [{ do: 'operation', id: replaced.id, step: replaced.step, outcome: 'cancelled' }]
  const access: readonly Action[] = observed.hasAccess ? [] : [{ do: 'effect', name: 'grant', input: { namespace } }]
  const due = dueFence(input)
  const edit = detectEdit(node)
  return [
    ...access,
    ...(due !== undefined
      ? [due]
      : edit !== undefined
        ? [adopt(input, edit)]
        : toActions(input, combined(decide(input), independentOfOperation(input)))),
  ]
}

/** What a node needs whatever is under way on it. */
function independentOfOperation(input: ReconcileInput): Decision {
  if (input.node.status?.fence !== undefined) return recovery(input)
  return activeOperation(input.node)?.kind === 'node.fence' ? {} : watchReachability(input)
}

const combined = (decision: Decision, other: Decision): Decision => ({
  ...decision,
  actions: [...(decision.actions ?? []), ...(other.actions ?? [])],
  status: { ...other.status, ...decision.status },
  waitSeconds: Math.min(
    decision.waitSeconds ?? Number.POSITIVE_INFINITY,
    other.waitSeconds ?? Number.POSITIVE_INFINITY,
  ),
})

function decide(input: ReconcileInput): Decision {
  const operation = activeOperation(input.node)
  if (operation === undefined) return {}
  const flow = FLOWS[operation.kind]
  return flow === undefined
    ? { outcome: 'failed', error: `A node knows no operation ${operation.kind}.` }
    : withinDeadline({ ...input, operation }, flow({ ...input, operation }))
}

/** What is not done at its deadline has failed. */
function withinDeadline({ operation, now }: OperationInput, decision: Decision): Decision {
  if (decision.outcome !== undefined || now.getTime() < Date.parse(operation.deadlineAt)) return decision
  return {
    ...decision,
    outcome: 'failed',
    error: `It was not done in time: still waiting for ${decision.waitFor ?? 'the platform'}.`,
  }
}
