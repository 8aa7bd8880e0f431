/** The actions of the backup's plan: its effects by name, each with its input. */
import type { BackupClaim, BackupId } from '../../../db/backup/index.ts'
import type { AuditEffects } from '../../kit/audit.ts'
import type { SharedBackups } from '../../kit/backup-key.ts'
import type { ActionWith } from '../../kit/effects.ts'

export interface BackupEffects extends AuditEffects {
  readonly claim: BackupClaim
  readonly release: BackupId
  /** Gives a host access to what belongs to the account: its key, which is created at the first use, and its places. */
  readonly shareKey: SharedBackups
  /** Creates the account's places in the object storage of these zones; a store that does not answer is no error. */
  readonly openPlaces: { readonly accountId: string; readonly zones: readonly string[] }
  /** Mails the owners of the account that a backup failed its verification. */
  readonly reportDamage: { readonly accountId: string; readonly damage: string; readonly operationId: string }
}
export type BackupAction = ActionWith<BackupEffects>

/** Whether PostgreSQL granted the claims of the backup. */
export const CLAIMED = 'Claimed'
/** Whether a host has the key of the account. */
export const KEY_SHARED = 'KeyShared'
/** Whether the account has its places in object storage. */
export const PLACES_OPENED = 'PlacesOpened'
