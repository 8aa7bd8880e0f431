/** A snapshot keeps the content of a storage before a backup is restored to it. Pure. */
import type { OperationEvent } from '../../../kit/reconcile/action.ts'
import { finalizerOf } from '../../../resources/kit/define.ts'
import { ACCOUNT_LABEL } from '../../../resources/kit/labels.ts'
import { Snapshot, type SnapshotSpec } from '../../../resources/snapshot/index.ts'
import type { PlainAction } from '../../kit/effects.ts'
import { derivedId } from '../../../domain/uuid.ts'
import { derivedStanza } from '../../kit/operation/stanza.ts'
import { failed, reconciling } from '../../kit/synced.ts'
import type { OperationInput, Rule } from './decision.ts'

const RESTORE_ACTOR = 'system:backup_restore'
const SAFETY_DAYS = 7
const DAY_MILLISECONDS = 86_400_000

/** Name of the snapshot that is taken before a restore. */
export const safetyName = (operationId: string): string => derivedId(`${operationId}/safety`)

/** The content of the disk is kept for some days, in case the restore was a mistake. */
export const isContentKept: Rule = (input) => {
  const { safety, jobs, isKeepable, isDiskFree, accountId = '' } = input.observed
  if (jobs.length > 0 || !isDiskFree || isKeepable !== true || safety?.status?.state === 'online') return undefined
  if (safety?.status?.state === 'error')
    return failed('placed', `What the storage holds could not be kept: ${safety.status.stateDetail ?? ''}`)
  return {
    ...reconciling('Keeping'),
    step: 'placed',
    actions: safety === undefined ? [keep(input, accountId)] : [],
    waitFor: 'a snapshot of what the storage holds',
  }
}

export const keptEvents = ({ observed: { safety } }: OperationInput): readonly OperationEvent[] =>
  safety?.status?.state === 'online'
    ? [{ kind: 'kept', message: `Snapshot ${safety.metadata.name} has what the storage held before.` }]
    : []

function keep({ backup, operation, now }: OperationInput, accountId: string): PlainAction {
  const { namespace = '', name: restoredBackupId } = backup.metadata
  const { id: seed } = operation
  const spec: SnapshotSpec = {
    storageId: backup.spec.storageId,
    title: `Before the restore of backup ${restoredBackupId}`,
    labels: {},
    restoredBackupId,
    expiresAt: new Date(now.getTime() + SAFETY_DAYS * DAY_MILLISECONDS).toISOString(),
    operation: derivedStanza('snapshot.create', { seed, actor: RESTORE_ACTOR, now }),
  }
  const name = safetyName(operation.id)
  const labels = { [ACCOUNT_LABEL]: accountId }
  return {
    do: 'ensure',
    type: Snapshot,
    draft: { metadata: { namespace, name, labels, finalizers: [finalizerOf(Snapshot)] }, spec },
  }
}
