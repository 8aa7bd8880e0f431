/** Cordoning and uncordoning: done when placement knows. */
import type { Decision } from './decision.ts'
import type { OperationInput } from './observed.ts'

/** The node accepts nothing new; what is on it stays. An edit that removes the cordon meanwhile takes precedence. */
export function cordon({ node, observed }: OperationInput): Decision {
  if (!node.spec.isCordoned) return { step: 'cordoned', outcome: 'cancelled' }
  return isClosed(observed)
    ? { step: 'cordoned', outcome: 'succeeded', status: { isCordoned: true } }
    : { step: 'cordoned', waitFor: 'placement to leave the node out' }
}

/** The node is like any other again, also after maintenance; an unreachable node accepts servers when it returns. */
export function uncordon({ node }: OperationInput): Decision {
  // Servers may have arrived meanwhile: to have the node empty again, it must be drained again.
  if (node.spec.isCordoned) return { step: 'uncordoned', outcome: 'cancelled', status: { isInMaintenance: false } }
  return {
    step: 'uncordoned',
    outcome: 'succeeded',
    status: { plannedWork: undefined, isCordoned: false, isInMaintenance: false },
  }
}

/** Placement assigns nothing to the node. */
export const isClosed = ({ mirror }: OperationInput['observed']): boolean =>
  mirror === undefined || !mirror.isSchedulable
