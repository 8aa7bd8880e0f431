/** The actions of the node's plan: the effects of nodes by name, each with its input. `effects.ts` implements them. */
import type { MirroredNode } from '../../../db/placement/index.ts'
import type { AuditEffects } from '../../kit/audit.ts'
import type { ActionWith } from '../../kit/effects.ts'
import type { PlatformOperation, ServerOperationEffects } from '../../kit/platform-operation.ts'
import type { BlockedDeletion } from './observed.ts'

export interface NodeEffects extends AuditEffects, ServerOperationEffects {
  /** Writes the node's state to PostgreSQL, where placement reads it. */
  readonly mirror: MirroredNode
  /** Removes the node from placement. */
  readonly forget: { readonly node: string }
  /** Creates the token with which the API server authenticates to the agent. */
  readonly grant: { readonly namespace: string }
  /** Starts an operation on a storage. */
  readonly orderStorage: PlatformOperation
  /** Reads the power of the host, or cuts it. */
  readonly power: { readonly ask: 'state' | 'off' }
  /** Takes the host's access to shared storage, or gives it back. */
  readonly storage: { readonly ask: 'take' | 'give' }
  /** Removes deleted objects on the node that wait for its agent, as long as the agent has reported no other boot than
   *  the one that was lost. */
  readonly vacate: {
    readonly namespace: string
    readonly bootId: string
    readonly blockedDeletions: readonly BlockedDeletion[]
  }
}
export type NodeAction = ActionWith<NodeEffects>
