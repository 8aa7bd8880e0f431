/** What the node's plan may decide: the effects of nodes by name, each with its input. They are carried out by
 *  `effects.ts`. */
import type { MirroredNode } from '../../../db/placement/index.ts'
import type { AuditEffects } from '../../kit/audit.ts'
import type { ActionWith } from '../../kit/effects.ts'
import type { PlatformOperation, ServerOperationEffects } from '../../kit/platform-operation.ts'
import type { BlockedDeletion } from './observed.ts'

export interface NodeEffects extends AuditEffects, ServerOperationEffects {
  /** The node becomes so in PostgreSQL, where placement reads. */
  readonly mirror: MirroredNode
  /** Placement forgets the node. */
  readonly forget: { readonly node: string }
  /** Makes what the API server says to the agent to be let in. */
  readonly grant: { readonly namespace: string }
  /** Starts an operation on a storage. */
  readonly orderStorage: PlatformOperation
  /** Reads the power of the host, or cuts it. */
  readonly power: { readonly ask: 'state' | 'off' }
  /** Takes the host's access to shared storage, or gives it back. */
  readonly storage: { readonly ask: 'take' | 'give' }
  /** Removes what is deleted on the node and waits for its agent, which ran with the boot when it was lost. */
  readonly vacate: {
    readonly namespace: string
    readonly bootId: string
    readonly blockedDeletions: readonly BlockedDeletion[]
  }
}
export type NodeAction = ActionWith<NodeEffects>
