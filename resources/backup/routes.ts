/** Backups as the API shows them: public shape, bridge from the stored one, routes. */
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
    origin_storage_id: z.string().describe('The storage that it is a point of.'),
    copy_of_backup_id: z.string().nullable().describe('The backup of another zone that it is a copy of.'),
    title: z.string(),
    kind: z.enum(BACKUP_KINDS).describe('Whether somebody asked for it, or a schedule did.'),
    state: z.enum(BACKUP_STATES).describe('Only one that is online can be restored.'),
    size_gibibytes: z.int().describe('0 until it is online.'),
    created_at: DateTime,
    completed_at: DateTime.nullable().describe('When all of it was in its store.'),
    expires_at: DateTime.nullable().describe('When it is deleted by itself; null for never.'),
    target: z
      .enum(BACKUP_TARGETS)
      .optional()
      .describe("The zone's replicated storage, the region's vault off all hosts, or the zone's single store."),
    same_host: z
      .boolean()
      .optional()
      .describe('Whether it is stored on the host of its storage, so that losing that host loses both.'),
    verified_at: DateTime.nullable().optional().describe('When all of it was last read back.'),
    verification_error: z.string().nullable().optional().describe('What that found to be missing or wrong.'),
  })
  .meta({ id: 'Backup' })
export type BackupView = z.infer<typeof BackupView>
export type StoredBackup = Stored<BackupSpec, BackupStatus>

/** What the view takes from elsewhere. */
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
    expires_at: z.iso.datetime().nullish().describe('When it is deleted by itself; never when null or absent.'),
  })
  .meta({ id: 'CreateBackup' })

const ofStorages = routesUnder({ path: '/v1/storages', area: AREA })

export const createBackup = ofStorages.post('create_backup', '/{id}/backups', {
  summary: 'Back up a storage',
  description:
    'Its server may run: the backup is the disk as it is at one instant. Only what has changed since the last backup ' +
    'is read; each backup is complete by itself.',
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
  description: 'Newest first, also those of storages that are deleted.',
  query: PageQuery.extend({ storage_id: Id.optional() }),
})

export const getBackup = verbs.read('get_backup', { summary: 'Read a backup' })

export const deleteBackup = verbs.remove('delete_backup', {
  summary: 'Delete a backup',
  description: 'Backups that were made after it stay complete.',
  starts: ['backup.delete'],
})

export const restoreBackup = verbs.post('restore_backup', '/{id}/restore', {
  summary: 'Restore a backup to its storage',
  description:
    "Replaces the content of the backup's storage, whose server must be stopped. A backup that did not verify is " +
    'restored with force only.',
  starts: ['backup.restore'],
  isDestructive: true,
  body: z.strictObject({ force: z.boolean().default(false).describe('Restore it although it did not verify.') }),
})

export const verifyBackup = verbs.post('verify_backup', '/{id}/verify', {
  summary: 'Read all of a backup back',
  description: 'verified_at and verification_error say what it found.',
  starts: ['backup.verify'],
})

export const BACKUP_ROUTES = [createBackup, listBackups, getBackup, deleteBackup, restoreBackup, verifyBackup] as const
