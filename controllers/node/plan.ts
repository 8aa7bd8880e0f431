/** The node's plan: pure, synchronous, total. Guards in order: leaving, an operation that another one replaced, its
 *  namespace, its agent's
 *  access, a fencing that is due, an edit without an operation, the operation under way beside what silence or its
 *  fence asks for. */
import type { OperationKind } from '../../domain/operations.ts'
import { Namespace } from '../../kit/kube/object.ts'
import type { Action } from '../../kit/reconcile/action.ts'
import { nodeNamespace } from '../../resources/instance/index.ts'
import { replacedProgress } from '../operation/stanza.ts'
import { adopt, unaskedEdit } from './direct-edit.ts'
import { upgradeAgent } from './agent-upgrade.ts'
import { cordon, uncordon } from './cordon.ts'
import { type Decision, toActions } from './decision.ts'
import { drain } from './drain.ts'
import { fence } from './fence.ts'
import { leave } from './removal.ts'
import { provision } from './provision.ts'
import { recovery } from './recovery.ts'
import { activeOperation, type NodeObject, type Seen, type Turn, type Work } from './observed.ts'
import { dueFence, silence } from './unreachable.ts'

const FLOWS: Partial<Record<OperationKind, (work: Work) => Decision>> = {
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
export function plan(node: NodeObject, seen: Seen, now: Date): readonly Action[] {
  const turn: Turn = { node, seen, now }
  const namespace = nodeNamespace(node.metadata.name)
  if (node.metadata.deletionTimestamp !== undefined) return leave(turn)
  if (!seen.hasNamespace)
    return [{ do: 'ensure', type: Namespace, draft: { metadata: { name: namespace }, spec: undefined } }]
  const replaced = replacedProgress(node)
  if (replaced !== undefined) return [{ do: 'operation', id: replaced.id, step: replaced.step, outcome: 'cancelled' }]
  const access: readonly Action[] = seen.hasAccess ? [] : [{ do: 'effect', name: 'grant', input: { namespace } }]
  const due = dueFence(turn)
  const edit = unaskedEdit(node)
  return [
    ...access,
    ...(due !== undefined
      ? [due]
      : edit !== undefined
        ? [adopt(turn, edit)]
        : toActions(turn, beside(decide(turn), standing(turn)))),
  ]
}

/** What a node needs whatever is under way on it. */
function standing(turn: Turn): Decision {
  if (turn.node.status?.fence !== undefined) return recovery(turn)
  return activeOperation(turn.node)?.kind === 'node.fence' ? {} : silence(turn)
}

const beside = (decision: Decision, other: Decision): Decision => ({
  ...decision,
  actions: [...(decision.actions ?? []), ...(other.actions ?? [])],
  status: { ...other.status, ...decision.status },
  waitSeconds: Math.min(
    decision.waitSeconds ?? Number.POSITIVE_INFINITY,
    other.waitSeconds ?? Number.POSITIVE_INFINITY,
  ),
})

function decide(turn: Turn): Decision {
  const operation = activeOperation(turn.node)
  if (operation === undefined) return {}
  const flow = FLOWS[operation.kind]
  const work: Work = { ...turn, operation }
  return flow === undefined
    ? { outcome: 'failed', error: `A node knows no operation ${operation.kind}.` }
    : inTime(work, flow(work))
}

/** What is not done at its deadline has failed. */
function inTime({ operation, now }: Work, decision: Decision): Decision {
  if (decision.outcome !== undefined || now.getTime() < Date.parse(operation.deadlineAt)) return decision
  return {
    ...decision,
    outcome: 'failed',
    error: `It was not done in time: still waiting for ${decision.waitFor ?? 'the platform'}.`,
  }
}
