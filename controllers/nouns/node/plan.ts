/** The node's plan: pure, synchronous, total. `controllers/kit/operation/plan.ts` has what is the same for every noun
 *  with operations; here are the flows of a node, and what comes before them: its removal, its namespace, and a fencing
 *  that is due. */
import { Namespace } from '../../../kit/kube/object.ts'
import { nodeNamespace } from '../../../resources/instance/index.ts'
import { planOperations } from '../../kit/operation/plan.ts'
import type { NodeAction } from './actions.ts'
import { upgradeAgent } from './agent-upgrade.ts'
import { cordon, uncordon } from './cordon.ts'
import type { Decision } from './decision.ts'
import { detectEdit } from './direct-edit.ts'
import { drain } from './drain.ts'
import { drainStorage } from './drain-storage.ts'
import { fence } from './fence.ts'
import type { NodeObject, Observed, ReconcileInput } from './observed.ts'
import { provision } from './provision.ts'
import { remove } from './removal.ts'
import { toActions } from './status.ts'
import { dueFence } from './unreachable.ts'

export const plan = planOperations<NodeObject, Observed, ReconcileInput, Decision, NodeAction>({
  label: 'A node',
  endedByDeletion: 'all',
  flows: {
    'node.cordon': cordon,
    'node.uncordon': uncordon,
    'node.provision': provision,
    'node.drain': drain,
    'node.maintenance': drain,
    'storage.drain_host': drainStorage,
    'node.agent_upgrade': upgradeAgent,
    'node.fence': fence,
  },
  inputOf: (node, observed, now) => ({ node, observed, now }),
  unchanged: () => ({}),
  first(input) {
    if (input.node.metadata.deletionTimestamp !== undefined) return remove(input)
    return input.observed.hasNamespace ? undefined : [ensureNamespace(input)]
  },
  guard(input) {
    const due = dueFence(input)
    return due && [...agentAccess(input), due]
  },
  detectEdit({ node, observed }) {
    const edit = detectEdit(node)
    return edit && { ...edit, actor: observed.editor }
  },
  idle: () => ({}),
  // The entry is written once: by the request or here, whichever is first.
  auditedAs: ({ kind }) => kind,
  toActions: (input, decision) => [...agentAccess(input), ...toActions(input, decision)],
})

const ensureNamespace = ({ node }: ReconcileInput): NodeAction => ({
  do: 'ensure',
  type: Namespace,
  draft: { metadata: { name: nodeNamespace(node.metadata.name) }, spec: undefined },
})

/** The access token is created once, and again when it was removed. */
const agentAccess = ({ node, observed }: ReconcileInput): readonly NodeAction[] =>
  observed.hasAccess ? [] : [{ do: 'effect', name: 'grant', input: { namespace: nodeNamespace(node.metadata.name) } }]
