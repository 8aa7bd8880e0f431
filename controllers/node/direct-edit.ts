/** Edits of a node that no operation stands for: made with kubectl or GitOps. They get their operation here, so that
 *  the operation log
 *  and the operators' log are complete whichever door was used. */
import type { OperationKind } from '../../domain/operations.ts'
import type { Action } from '../../kit/reconcile/action.ts'
import { activeOperation, derivedStanza } from '../operation/stanza.ts'
import { type NodeObject, type ReconcileInput } from './observed.ts'

export interface NodeEdit {
  readonly kind: OperationKind
  /** The field that was edited. */
  readonly field: string
  /** What goes with the edit: a node that is to be empty takes nothing new. */
  readonly spec?: Readonly<Record<string, unknown>>
}

/** What an edit asks for; undefined when spec and status agree. What a node is made with is no edit. */
export function detectEdit(node: NodeObject): NodeEdit | undefined {
  const { spec, status, metadata } = node
  if (
    metadata.deletionTimestamp !== undefined ||
    activeOperation(node) !== undefined ||
    status?.isCordoned === undefined
  )
    return undefined
  if (status.isCordoned && !spec.isCordoned)
    return { kind: 'node.uncordon', field: 'isCordoned', spec: { isInMaintenance: null } }
  if (spec.isInMaintenance === true && status.isInMaintenance !== true)
    return { kind: 'node.maintenance', field: 'isInMaintenance', spec: { isCordoned: true } }
  if (spec.isCordoned && !status.isCordoned) return { kind: 'node.cordon', field: 'isCordoned' }
  const isOtherAgent = spec.desiredAgentVersion !== undefined && spec.desiredAgentVersion !== status.desiredAgentVersion
  return isOtherAgent ? { kind: 'node.agent_upgrade', field: 'desiredAgentVersion' } : undefined
}

/** Puts the operation beside the edit. Its id follows from the generation that was seen, so that trying again is the
 *  same operation. */
export function adopt({ node, observed, now }: ReconcileInput, { kind, spec = {} }: NodeEdit): Action {
  const operation = derivedStanza(kind, {
    seed: `${node.metadata.uid ?? ''}/${node.metadata.generation ?? 0}`,
    actor: observed.editor,
    now,
  })
  // A merge patch keeps the members of the stanza before: those that this one lacks are taken out.
  return { do: 'change', patch: { spec: { ...spec, operation: { ...operation, arguments: null } } } }
}
