/** Inputs and decisions of the rules in a backup's flows. */
import type { KindOf } from '../../../domain/operations.ts'
import type { BackupStatus } from '../../../resources/backup/index.ts'
import type { During } from '../../kit/operation/plan.ts'
import type { SyncDecision } from '../../kit/synced.ts'
import type { BackupAction } from './actions.ts'
import type { BackupObject, Observed } from './observed.ts'

export interface ReconcileInput {
  readonly backup: BackupObject
  readonly observed: Observed
  readonly now: Date
}
export type OperationInput = During<ReconcileInput>

export type Decision = SyncDecision<BackupStatus, BackupAction, KindOf<'backup'> | 'storage.backup'>
export type Rule = (input: OperationInput) => Decision | undefined
