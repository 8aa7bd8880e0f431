/** Changes that a backup's state allows: one rule per verb, the same for every interface. Refusals come in the
 *  contract's order: operation_in_progress, server_not_stopped, state_not_allowed. */
import type { OperationKind } from '../operations.ts'
import { conflict, operationInProgress } from '../problem.ts'

export interface BackupFacts {
  readonly id: string
  readonly state: 'creating' | 'online' | 'error' | 'deleting'
  readonly verificationError: string | undefined
  readonly activeOperation: { readonly id: string; readonly kind: OperationKind } | undefined
}

const referenceOf = ({ id }: Pick<BackupFacts, 'id'>) => ({ type: 'backup', id })

function requireIdle(backup: BackupFacts): void {
  if (backup.activeOperation !== undefined) throw operationInProgress(backup.activeOperation.id, referenceOf(backup))
}

function requireOnline(backup: BackupFacts): void {
  if (backup.state !== 'online')
    throw conflict(
      'state_not_allowed',
      `The backup is in state ${backup.state}; only one that is online can be used.`,
      {
        resource: referenceOf(backup),
      },
    )
}

/** Throws 409 unless all of the backup can be read back. */
export function requireVerifiable(backup: BackupFacts): void {
  requireIdle(backup)
  requireOnline(backup)
}

/** Throws 409 unless the backup can be restored; one that failed verification by force only. A restore cancels a
 *  verification under way: the platform verifies on its own schedule, and nobody who needs the data must wait for
 *  it. */
export function requireRestorable(backup: BackupFacts, isForced: boolean): void {
  if (backup.activeOperation?.kind !== 'backup.verify') requireIdle(backup)
  requireOnline(backup)
  if (backup.verificationError !== undefined && !isForced)
    throw conflict(
      'state_not_allowed',
      `The backup did not verify: ${backup.verificationError} Restore it with force.`,
      {
        resource: referenceOf(backup),
      },
    )
}

/** Throws 409 unless another storage can be created from the backup, also while it is being verified. */
export function requireReadableBackup(backup: BackupFacts): void {
  requireOnline(backup)
  if (backup.verificationError !== undefined)
    throw conflict('state_not_allowed', `The backup did not verify: ${backup.verificationError}`, {
      resource: referenceOf(backup),
    })
}

/** Throws 409 while something is being created from the backup: `storage ID`, or `custom image ID`. */
export function requireUnread(backup: Pick<BackupFacts, 'id'>, [reader]: readonly string[]): void {
  if (reader !== undefined)
    throw conflict('in_use', `The backup is being read: ${reader} is made from it. Delete it when that is done.`, {
      resource: referenceOf(backup),
    })
}

/** Throws 409 unless the backup can be deleted. One that is still being created can: its creation is cancelled. One
 *  that is being verified can too. */
export function requireDeletable(backup: BackupFacts): void {
  const kind = backup.activeOperation?.kind
  if (kind !== 'storage.backup' && kind !== 'backup.verify') requireIdle(backup)
  if (backup.state === 'deleting')
    throw conflict('state_not_allowed', 'The backup is being deleted.', { resource: referenceOf(backup) })
}

/** Throws 409 for a server that runs: its disk cannot be replaced. */
export function requireStopped(server: { readonly id: string; readonly isStopped: boolean } | undefined): void {
  if (server !== undefined && !server.isStopped)
    throw conflict('server_not_stopped', 'The server of the storage must be stopped.', {
      resource: { type: 'server', id: server.id },
    })
}
