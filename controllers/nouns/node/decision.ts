/** The decision about a node. */
import type { KindOf } from '../../../domain/operations.ts'
import type { NodeStatus } from '../../../resources/node/index.ts'
import type { OperationDecision } from '../../kit/operation/decision.ts'
import type { NodeAction } from './actions.ts'
import type { NodeStateReport } from './state.ts'

export interface Decision extends OperationDecision<NodeAction, KindOf<'node'> | 'storage.drain_host'> {
  /** Replaces the state from its heartbeat and its spec. */
  readonly state?: NodeStateReport
  readonly status?: Partial<Record<keyof NodeStatus, unknown>>
}
