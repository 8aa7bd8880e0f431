/** Cordoning and uncordoning: done when placement knows. */
import type { Decision } from './decision.ts'
import type { OperationInput } from './observed.ts'

/** The node takes nothing new; what is on it stays. An edit that takes the cordon back meanwhile wins. */
export function cordon({ node, observed }: OperationInput): Decision {
  if (!node.spec.isCordoned) return { step: 'cordoned', outcome: 'cancelled' }
  return isClosed(observed)
    ? { step: 'cordoned', outcome: 'succeeded', status: { isCordoned: true } }
    : { step: 'cordoned', waitFor: 'placement to leave the node out' }
}

/** The node is as any other again, also after maintenance; one that does not answer takes servers when it does. */
export function uncordon({ node }: OperationInput): Decision {
  // Servers may have come meanwhile: whoever wants it empty again has it emptied again.
  if (node.spec.isCordoned) return { step: 'uncordoned', outcome: 'cancelled', status: { isInMaintenance: false } }
  return {
    step: 'uncordoned',
    outcome: 'succeeded',
    status: { plannedWork: undefined, isCordoned: false, isInMaintenance: false },
  }
}

/** Placement gives the node nothing. */
export const isClosed = ({ mirror }: OperationInput['observed']): boolean =>
  mirror === undefined || !mirror.isSchedulable
