/** Backup: one point in time of a storage, kept separately from the storage. Stored shape, public shape, conversion and
 *  routes. */
import { z } from 'zod'
import { resource } from '../kit/define.ts'
import { DateTime, Id, PageQuery, ReportedOperation, RequestedOperation, type Stored, ZoneName } from '../kit/shapes.ts'
import type { BackupFacts } from '../../domain/backup/rules.ts'
import { defined } from '../../domain/defined.ts'
import { OperationView, activeOperationOf } from '../operation/index.ts'
import { routesUnder, verbsOf } from '../kit/verbs.ts'
import { viewOf } from '../kit/view.ts'
import { ObjectName, OBSERVED, StoredTitle, Title } from '../kit/fields.ts'
import { AGE, READY, STATE } from '../kit/columns.ts'

export const BACKUP_STATES = ['creating', 'online', 'error', 'deleting'] as const
export const BACKUP_KINDS = ['manual', 'scheduled'] as const
export const BACKUP_TARGETS = ['ceph', 'vault', 'zone-object-store'] as const

const Instant = z.string().max(64).meta({ format: 'date-time' })

export const Backup = resource({
  kind: 'Backup',
  plural: 'backups',
  shortNames: ['bak'],
  scope: 'Namespaced',
  customers: 'write',
  description:
    'One point in time of a storage, kept separately from it. Create the object with spec.storageId to create the ' +
    'backup, and delete it to delete the backup. It outlives its storage until it expires.',
  spec: z
    .strictObject({
      storageId: z.string().min(1).max(253).describe('Name of the Storage to back up.'),
      zone: ZoneName.optional().describe('Zone of the storage. Written by the platform when absent.'),
      title: StoredTitle.default('').describe('Title: one line of free text.'),
      kind: z.enum(BACKUP_KINDS).default('manual').describe('Whether a user or a schedule created it.'),
      expiresAt: Instant.optional().describe('Time when the platform deletes it; absent for never.'),
      copyOf: z
        .strictObject({
          name: ObjectName.describe('Name of the Backup.'),
          zone: ZoneName.describe('Its zone.'),
        })
        .optional()
        .describe('Backup in another zone that this is a copy of. Written by the platform only.'),
      operation: RequestedOperation,
    })
    .describe('The desired state of the backup.'),
  status: z
    .strictObject({
      ...OBSERVED,
      state: z.enum(BACKUP_STATES).describe('State of the backup, as in the API.'),
      stateDetail: z.string().max(1024).optional().describe('Human-readable reason for the state.'),
      region: z.string().max(63).optional().describe('Region of the zone.'),
      zone: z.string().max(63).optional().describe('Zone whose store has the backup.'),
      sizeGibibytes: z.int().optional().describe('Size of the storage at that point, in GiB.'),
      completedAt: Instant.optional().describe('Time when it was complete.'),
      place: z
        .enum(['host', 'object-storage'])
        .optional()
        .describe(
          "Where it is: in the object storage of the zone, or in the place configured on the zone's hosts (also " +
            'when absent).',
        ),
      target: z.enum(BACKUP_TARGETS).optional().describe('Kind of store that has the backup.'),
      isSameHost: z.boolean().optional().describe('Whether it is on the same host as its storage.'),
      parent: z
        .string()
        .max(63)
        .optional()
        .describe('Backup whose unchanged data it shares. It does not depend on any other backup.'),
      origin: z
        .strictObject({
          name: ObjectName.describe('Name of the template.'),
          version: ObjectName.describe('Version of its image.'),
        })
        .optional()
        .describe('Template version that the disk was created from. The guest boots the kernel of that version.'),
      verifiedAt: Instant.optional().describe('Time when all data of the backup was last read for verification.'),
      verificationError: z
        .string()
        .max(1024)
        .optional()
        .describe('Missing or damaged data that the last verification found.'),
      lastRestore: z
        .strictObject({
          operationId: ObjectName.describe('Id of the operation.'),
          outcome: z
            .enum(['succeeded', 'untouched', 'failed'])
            .describe('untouched: nothing was written. failed: a part was written, or may have been.'),
        })
        .optional()
        .describe('Outcome of the last restore to its own storage.'),
      operation: ReportedOperation,
    })
    .describe('Observed state of the backup. Written by its controller.'),
  columns: [
    { name: 'Storage', type: 'string', jsonPath: '.spec.storageId' },
    STATE,
    { name: 'Size', type: 'integer', jsonPath: '.status.sizeGibibytes' },
    { name: 'Completed', type: 'date', jsonPath: '.status.completedAt' },
    { name: 'Expires', type: 'string', jsonPath: '.spec.expiresAt' },
    READY,
    AGE,
  ],
  selectableFields: ['.spec.storageId'],
  fixed: ['storageId', 'kind', 'copyOf'],
})
/** While it is being created: a copy reads a store, and an online backup waits only for its copy. */
export const readsDisk = ({
  spec,
  status,
}: {
  readonly spec: BackupSpec
  readonly status?: BackupStatus | undefined
}) => spec.copyOf === undefined && status?.state !== 'online'

export type BackupSpec = z.infer<typeof Backup.spec>
export type BackupStatus = z.infer<typeof Backup.status>

/** Zone whose object storage has the backup; undefined when it is in a place of the hosts. */
export const objectStorageZoneOf = ({ status }: { readonly status?: BackupStatus | undefined }): string | undefined =>
  status?.place === 'object-storage' ? status.zone : undefined

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
    title: Title.default(''),
    expires_at: z.iso.datetime().nullish().describe('Time when the platform deletes it; null or absent for never.'),
  })
  .meta({ id: 'CreateBackup' })

const ofStorages = routesUnder({ path: '/v1/storages' })

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

const verbs = verbsOf({ path: '/v1/backups', noun: 'backup', view: BackupView })

export const listBackups = verbs.list('list_backups', {
  summary: 'List backups',
  description: 'Newest first, including backups of deleted storages.',
  query: PageQuery.extend({ storage_id: Id.optional().describe('Returns only backups of this storage.') }),
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
