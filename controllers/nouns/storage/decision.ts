/** A decision about a storage: its state, what to do, and what people see. `toActions` is the only place where a
 *  decision becomes status, conditions and operation progress. */
import type { KindOf } from '../../../domain/operations.ts'
import type { ConditionDraft } from '../../../kit/reconcile/action.ts'
import type { StorageStatus } from '../../../resources/storage/index.ts'
import type { PlainAction } from '../../kit/effects.ts'
import { type Health, healthConditions } from '../../kit/health.ts'
import { operationActions, type OperationDecision, truncated, waitActions } from '../../kit/operation/decision.ts'
import type { During } from '../../kit/operation/plan.ts'
import type { StorageAction } from './actions.ts'
import type { Observed } from './observed.ts'
import { decideRestore, type RestoreDecision } from './restore.ts'
import type { StorageObject } from './volumes.ts'

/** The input of every rule. */
export interface ReconcileInput {
  readonly storage: StorageObject
  readonly observed: Observed
  readonly now: Date
}
/** The input while an operation is under way. */
export type OperationInput = During<ReconcileInput>

export interface Decision extends OperationDecision<StorageAction, KindOf<'storage'>> {
  readonly state: StorageStatus['state']
  /** For people: the reason of an error. */
  readonly detail?: string
  readonly health: Health
  readonly reason: string
  readonly message?: string | undefined
  readonly status?: Partial<Record<keyof StorageStatus, unknown>>
  /** The process that owns the other zone continues: nothing else is written here. */
  readonly hasLeftZone?: boolean
  /** Nothing of the storage is left anywhere. */
  readonly isGone?: boolean
  /** The status is not written now: the next reconciliation decides again. */
  readonly isStatusDeferred?: boolean
}

export const reconciling = (
  state: Decision['state'],
  reason: string,
  message = '',
): Pick<Decision, 'state' | 'health' | 'reason' | 'message'> => ({ state, health: 'reconciling', reason, message })

export const failed = (detail: string, actions: readonly PlainAction[] = []): Decision => ({
  state: 'error',
  detail,
  health: 'stalled',
  reason: 'Error',
  message: detail,
  actions,
})

/** Keeps the state: nothing is known that would change it. */
export const unchanged = ({ storage: { status } }: ReconcileInput): Decision =>
  status?.state === 'online'
    ? { state: 'online', health: 'ready', reason: 'Online' }
    : status?.state === 'error'
      ? failed(status.stateDetail ?? '')
      : reconciling(status?.state ?? 'creating', 'Waiting')

/** In the order of execution: the work, the operation, the status, and how long to wait. */
export const toActions = (input: ReconcileInput, decision: Decision): readonly StorageAction[] => [
  ...(decision.actions ?? []),
  ...operationActions(input.storage, decision),
  ...(hasNoStatus(decision) ? [] : [statusAction(input, decision)]),
  ...(decision.isGone === true ? [{ do: 'finalized' } as const] : []),
  ...waitActions(decision),
]

/** A storage that is deleted without an operation leaves no status for anyone to read. */
const hasNoStatus = ({ hasLeftZone, isGone, isStatusDeferred, outcome }: Decision): boolean =>
  hasLeftZone === true || isStatusDeferred === true || (isGone === true && outcome === undefined)

const statusAction = (input: ReconcileInput, decision: Decision): PlainAction => {
  const { storage, observed } = input
  const restore = decideRestore(storage.status?.restore, observed.restore)
  const { state, detail, status, health, reason, message = '' } = afterRestore(decision, restore)
  return {
    do: 'status',
    status: {
      state,
      stateDetail: detail === undefined ? undefined : truncated(detail),
      ...(storage.spec.isBoot ? {} : { serverId: observed.claim?.serverId }),
      restore: restore.restore,
      ...status,
    },
    conditions: [...healthConditions(health, reason, truncated(message)), ...blockedCondition(storage)],
  }
}

/** A disk whose content is being replaced, or was replaced only in part, is not online. */
function afterRestore(decision: Decision, { state, detail = '' }: RestoreDecision): Decision {
  if (state === undefined || decision.state !== 'online') return decision
  return state === 'error'
    ? { ...decision, ...failed(detail) }
    : { ...decision, ...reconciling('restoring', 'Restoring') }
}

/** It was deleted with kubectl while something holds it: the deletion continues as soon as that has ended. */
const blockedCondition = ({ metadata, spec, status }: StorageObject): ConditionDraft[] => {
  const reason =
    metadata.deletionTimestamp === undefined
      ? undefined
      : spec.isBoot
        ? 'InUse'
        : spec.isProtected
          ? 'Protected'
          : undefined
  if (reason !== undefined)
    return [
      {
        type: 'DeletionBlocked',
        status: 'True',
        reason,
        message:
          reason === 'InUse'
            ? 'A boot storage goes with its server.'
            : 'The storage is protected. It is deleted as soon as spec.isProtected is false.',
        isRefusal: true,
      },
    ]
  return status?.conditions?.some(({ type }) => type === 'DeletionBlocked') === true
    ? [{ type: 'DeletionBlocked', status: 'False', reason: 'NotBlocked', message: '' }]
    : []
}
