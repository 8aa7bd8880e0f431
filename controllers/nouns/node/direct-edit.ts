/** The edit of a node that has no operation: made with kubectl or GitOps. Related fields are changed with it: a node
 *  that is to be emptied accepts nothing new. Pure. */
import type { DirectEdit } from '../../kit/operation/direct-edit.ts'
import { activeOperation } from '../../kit/operation/stanza.ts'
import type { NodeObject } from './observed.ts'

/** Undefined when spec and status agree. The fields that a node is created with are no edit. */
export function detectEdit(node: NodeObject): DirectEdit | undefined {
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
