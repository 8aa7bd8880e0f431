/** The actions of the storage's plan: the effects of storages by name, each with its input. `effects.ts` implements
 *  them. */
import type {
  DesiredSize,
  landStorage,
  landStorageMove,
  releaseStorage,
  reserveStorageMove,
  StorageId,
} from '../../../db/storage/index.ts'
import type { Key } from '../../../kit/kube/object.ts'
import type { AuditEffects } from '../../kit/audit.ts'
import type { SharedBackups } from '../../kit/backup-key.ts'
import type { ActionWith } from '../../kit/effects.ts'
import type { ClaimEffects } from '../../kit/changes.ts'
import type { ServerOperationEffects } from '../../kit/platform-operation.ts'

export interface StorageEffects extends AuditEffects, ClaimEffects, ServerOperationEffects {
  readonly land: Parameters<typeof landStorage>[1]
  readonly release: Parameters<typeof releaseStorage>[1]
  readonly keep: StorageId
  readonly detach: StorageId
  /** Releases what is claimed beyond this size. */
  readonly fit: StorageId & { readonly size: DesiredSize }
  readonly giveBack: StorageId
  readonly reserveMove: Parameters<typeof reserveStorageMove>[1]
  readonly landMove: Parameters<typeof landStorageMove>[1]
  readonly releaseMove: StorageId
  /** Creates the backup for a slot of the schedule. */
  readonly backUp: {
    readonly backup: string
    readonly accountId: string
    readonly zone: string
    readonly expiresAt: string
  }
  /** The key of the account's backups, for the host that reads one. */
  readonly shareBackupKey: SharedBackups
  readonly releaseSource: StorageId
  /** The key that both nodes of a copy share. */
  readonly shareKey: { readonly keys: readonly [Key, Key] }
}
export type StorageAction = ActionWith<StorageEffects>
