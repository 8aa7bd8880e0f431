/** Public shape and routes of backups, and the conversion from the stored shape. */
import { z } from 'zod'
import type { BackupFacts } from '../../domain/backup/rules.ts'
import { defined } from '../../domain/defined.ts'
import { activeOperationOf, OperationView } from '../operation/index.ts'
import { DateTime, Id, PageQuery, Printable, type Stored } from '../kit/shapes.ts'
import { routesUnder, verbsOf } from '../kit/verbs.ts'
import { viewOf } from '../kit/view.ts'
import { BACKUP_KINDS, BACKUP_STATES, BACKUP_TARGETS, type BackupSpec, type BackupStatus } from './stored.ts'

const AREA = 'Block storage, backups, custom images'

export const BackupView = z
  .strictObject({
    id: z.string(),
    zone: z.string(),
    region: z.string(),
    origin_storage_id: z.string().describe('Storage that was backed up.'),
    copy_of_backup_id: z.string().nullable().describe('Backup in another zone that this is a copy of.'),
    title: z.string(),
    kind: z.enum(BACKUP_KINDS).describe('Whether a user or a schedule created it.'),
    state: z.enum(BACKUP_STATES).describe('Only an online backup can be restored.'),
    size_gibibytes: z.int().describe('0 until it is online.'),
    created_at: DateTime,
    completed_at: DateTime.nullable().describe('Time when the backup was complete in its store.'),
    expires_at: DateTime.nullable().describe('Time when the platform deletes it; null for never.'),
    target: z
      .enum(BACKUP_TARGETS)
      .optional()
      .describe(
        "Where it is: the zone's replicated storage, the region's vault separate from all hosts, or the zone's " +
          'single store.',
      ),
    same_host: z
      .boolean()
      .optional()
      .describe('Whether it is on the same host as its storage; losing that host then loses both.'),
    verified_at: DateTime.nullable()
      .optional()
      .describe('Time when all data of the backup was last read for verification.'),
    verification_error: z
      .string()
      .nullable()
      .optional()
      .describe('Missing or damaged data that the last verification found.'),
  })
  .meta({ id: 'Backup' })
export type BackupView = z.infer<typeof BackupView>
export type StoredBackup = Stored<BackupSpec, BackupStatus>

/** Facts of other objects that the view needs. */
export interface BackupSurroundings {
  readonly region: string | undefined
}

const stateOf = ({ isDeleting, spec, status }: StoredBackup): BackupView['state'] =>
  isDeleting || spec.operation?.kind === 'backup.delete' ? 'deleting' : (status?.state ?? 'creating')

export function toBackupView(backup: StoredBackup, { region }: BackupSurroundings): BackupView {
  const { name, spec, status, createdAt } = backup
  return viewOf(BackupView, spec, {
    id: name,
    zone: status?.zone ?? spec.zone ?? '',
    region: region ?? status?.region ?? '',
    origin_storage_id: spec.storageId,
    copy_of_backup_id: spec.copyOf?.name ?? null,
    state: stateOf(backup),
    size_gibibytes: status?.sizeGibibytes ?? 0,
    created_at: createdAt,
    completed_at: status?.completedAt ?? null,
    ...defined({ target: status?.target, same_host: status?.isSameHost }),
    verified_at: status?.verifiedAt ?? null,
    verification_error: status?.verificationError ?? null,
  })
}

export function backupFactsOf(backup: StoredBackup): BackupFacts {
  const operation = activeOperationOf(backup)
  return {
    id: backup.name,
    state: stateOf(backup),
    verificationError: backup.status?.verificationError,
    activeOperation: operation === undefined ? undefined : { id: operation.id, kind: operation.kind },
  }
}

export const CreateBackup = z
  .strictObject({
    title: Printable.max(255).default(''),
    expires_at: z.iso.datetime().nullish().describe('Time when the platform deletes it; null or absent for never.'),
  })
  .meta({ id: 'CreateBackup' })

const ofStorages = routesUnder({ path: '/v1/storages', area: AREA })

export const createBackup = ofStorages.post('create_backup', '/{id}/backups', {
  summary: 'Back up a storage',
  description:
    'The server may run: the backup is the state of the disk at one instant. Only changes since the last backup ' +
    'are read, but every backup is complete without the others.',
  needs: 'standing',
  starts: ['storage.backup'],
  body: CreateBackup,
  answers: {
    202: z.strictObject({ backup: BackupView, operation: OperationView }),
  },
  refuses: [400, 404, 409, 422, 503],
})

const verbs = verbsOf({ path: '/v1/backups', area: AREA, noun: 'backup', view: BackupView })

export const listBackups = verbs.list('list_backups', {
  summary: 'List backups',
  description: 'Newest first, including backups of deleted storages.',
  query: PageQuery.extend({ storage_id: Id.optional() }),
})

export const getBackup = verbs.read('get_backup', { summary: 'Get a backup' })

export const deleteBackup = verbs.remove('delete_backup', {
  summary: 'Delete a backup',
  description: 'Later backups stay complete.',
  starts: ['backup.delete'],
})

export const restoreBackup = verbs.post('restore_backup', '/{id}/restore', {
  summary: 'Restore a backup to its storage',
  description:
    "Replaces the content of the backup's storage; its server must be stopped. A backup that failed verification " +
    'is restored only with force.',
  starts: ['backup.restore'],
  isDestructive: true,
  body: z.strictObject({
    force: z.boolean().default(false).describe('Restore the backup although its verification failed.'),
  }),
})

export const verifyBackup = verbs.post('verify_backup', '/{id}/verify', {
  summary: 'Verify a backup by reading all of its data',
  description: 'verified_at and verification_error report the result.',
  starts: ['backup.verify'],
})

export const BACKUP_ROUTES = [createBackup, listBackups, getBackup, deleteBackup, restoreBackup, verifyBackup] as const
