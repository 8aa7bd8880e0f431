/** Storage: a block device of an account, as it is stored. */
import { z } from 'zod'
import { BACKUP_SCHEDULE_CHARACTERS_MAXIMUM } from '../../domain/backup/schedule.ts'
import { resource } from '../kit/define.ts'
import { ReportedOperation, RequestedOperation, StoredLabels, ZoneName } from '../kit/shapes.ts'
import { ObjectName, OBSERVED, RetentionDays, StoredDiskGibibytes, StoredTitle } from '../kit/fields.ts'
import { AGE, READY, STATE, ZONE } from '../kit/columns.ts'

const Instant = z.string().max(64).meta({ format: 'date-time' })

export const STORAGE_STATES = ['creating', 'online', 'restoring', 'error', 'deleting'] as const
export const STORAGE_TIERS = ['standard', 'local-nvme'] as const
export const BACKUP_RETENTION_DAYS_DEFAULT = 7
/** Possible sources of a storage; an image is a CustomImage. */
export const STORAGE_SOURCES = ['template', 'backup', 'snapshot', 'storage', 'image'] as const

export const Storage = resource({
  kind: 'Storage',
  plural: 'storages',
  shortNames: ['sto'],
  scope: 'Namespaced',
  customers: 'write',
  description:
    'A block device of an account. Set serverId to attach it to a server in its zone, also to a running one; ' +
    'remove serverId to detach it. Raise sizeGibibytes to grow it. Each change becomes an operation, shown by ' +
    '`kubectl get operations` and in status.operation. Boot storages are created and deleted with their servers.',
  spec: z
    .strictObject({
      zone: ZoneName.describe('Zone of the storage. Cannot be changed; that of a boot storage follows its server.'),
      title: StoredTitle.default('').describe('Title: one line of free text.'),
      // Wider than the largest that is accepted (`STORAGE_GIBIBYTES_MAXIMUM`): stored objects must stay valid.
      sizeGibibytes: StoredDiskGibibytes.describe('Size in GiB. May grow, never shrink.'),
      tier: z
        .enum(STORAGE_TIERS)
        .default('standard')
        .describe(
          'standard is on the shared storage of the zone, if it has any; local-nvme is always on the disks of ' +
            'one host. Operators change the tier by moving the storage.',
        ),
      source: z
        .strictObject({
          kind: z
            .enum(STORAGE_SOURCES)
            .describe('Kind of the source. A template is for boot storages; an image is a CustomImage.'),
          id: ObjectName.describe('Name of the source.'),
        })
        .optional()
        .describe('Initial content of the storage; empty when absent.'),
      serverId: ObjectName.optional().describe('Name of the attached Server; detached when absent.'),
      isBoot: z.boolean().default(false).describe('Whether its server boots from it.'),
      labels: StoredLabels.default({}).describe('Labels as in the API, by which its lists are filtered.'),
      backupRetentionDays: RetentionDays.optional().describe(
        `Days for which its backups are kept; ${BACKUP_RETENTION_DAYS_DEFAULT} when absent.`,
      ),
      backupSchedule: z
        .string()
        .max(BACKUP_SCHEDULE_CHARACTERS_MAXIMUM)
        .optional()
        .describe(
          'Schedule of automatic backups: five cron fields, in UTC, at most hourly, such as "30 3 * * *". Never ' +
            'when absent.',
        ),
      backupCopyZone: ZoneName.optional().describe(
        'Another zone of the region to which each of its backups is copied. Its hosts must be able to read the ' +
          'backups of this zone.',
      ),
      isProtected: z.boolean().default(false).describe('While true, the storage cannot be deleted.'),
      operation: RequestedOperation,
    })
    .describe('The desired state of the storage.'),
  status: z
    .strictObject({
      ...OBSERVED,
      state: z.enum(STORAGE_STATES).describe('State of the storage, as in the API.'),
      stateDetail: z.string().max(1024).optional().describe('Human-readable reason for the state.'),
      region: z.string().max(63).optional().describe('Region of the zone.'),
      serverId: ObjectName.optional().describe('Server that has it or is getting it; absent while it is detached.'),
      nodeName: ObjectName.optional().describe('Node of the storage.'),
      sizeGibibytes: z.int().optional().describe('Current size in GiB.'),
      pool: z
        .string()
        .max(63)
        .optional()
        .describe(
          'Shared storage that it is on, which other nodes also reach; absent when it is on the disks of its node.',
        ),
      schedule: z
        .strictObject({
          text: z.string().max(BACKUP_SCHEDULE_CHARACTERS_MAXIMUM).describe('The schedule.'),
          doneUntil: Instant.describe('Time up to which its backups were created or not due.'),
        })
        .optional()
        .describe('Progress of its backup schedule.'),
      restore: z
        .strictObject({
          backup: ObjectName.describe('Name of the Backup.'),
          operationId: ObjectName.describe('Id of the operation that restores it.'),
          wasBroken: z
            .boolean()
            .optional()
            .describe('Whether the previous content was a partly restored backup, which this one replaces.'),
        })
        .optional()
        .describe('Backup that is being restored to the storage, or whose restore was interrupted.'),
      operation: ReportedOperation,
    })
    .describe('Observed state of the storage. Written by its controller.'),
  columns: [
    { name: 'Size', type: 'integer', jsonPath: '.spec.sizeGibibytes' },
    STATE,
    { name: 'Server', type: 'string', jsonPath: '.spec.serverId' },
    { name: 'Boot', type: 'boolean', jsonPath: '.spec.isBoot' },
    ZONE,
    READY,
    { name: 'Node', type: 'string', jsonPath: '.status.nodeName', priority: 1 },
    AGE,
  ],
  selectableFields: ['.spec.serverId', '.spec.zone'],
  fixed: ['source'],
  rules: [
    {
      rule:
        'self.spec.tier == oldSelf.spec.tier || ' +
        "(has(self.spec.operation) && self.spec.operation.kind == 'storage.move')",
      message: 'tier cannot be changed: operators move the storage',
    },
    {
      rule: 'self.spec.zone == oldSelf.spec.zone || self.spec.isBoot',
      message: 'zone cannot be changed: only a boot storage goes to another, with its server',
    },
    {
      rule:
        'self.spec.sizeGibibytes >= oldSelf.spec.sizeGibibytes || ' +
        '(has(self.status) && has(self.status.sizeGibibytes) && self.spec.sizeGibibytes >= self.status.sizeGibibytes)',
      message: 'sizeGibibytes may grow, never shrink',
    },
    { rule: '!self.spec.isBoot || has(self.spec.serverId)', message: 'a boot storage has a server' },
  ],
})
export type StorageSpec = z.infer<typeof Storage.spec>
export type StorageSource = NonNullable<StorageSpec['source']>
export type StorageStatus = z.infer<typeof Storage.status>

/** Actual size of its disk in GiB, or the desired size. */
export const diskGibibytesOf = ({
  spec,
  status,
}: {
  readonly spec: Pick<StorageSpec, 'sizeGibibytes'>
  readonly status?: Pick<StorageStatus, 'sizeGibibytes'> | undefined
}): number => Math.max(spec.sizeGibibytes, status?.sizeGibibytes ?? 0)
