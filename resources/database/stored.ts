/** Database: PostgreSQL of an account on a machine of the platform, as it is stored. */
import { z } from 'zod'
import { BACKUP_SCHEDULE_CHARACTERS_MAXIMUM } from '../../domain/backup/schedule.ts'
import {
  ARCHIVE_PAUSE_REASONS,
  ARCHIVE_STATES,
  DATABASE_PLANS,
  DATABASE_RETENTION_DAYS,
  DATABASE_SCHEDULE_DEFAULT,
  DATABASE_STORAGE_GIBIBYTES,
  IDENTIFIER_PATTERN,
} from '../../domain/database/rules.ts'
import { resource } from '../kit/define.ts'
import { ARCHIVE_BACKUPS_MAXIMUM, ARCHIVE_GAPS_MAXIMUM } from '../managed-machine/index.ts'
import { Metered, ReportedOperation, RequestedOrEditedOperation, ZoneName } from '../kit/shapes.ts'
import { AddressText, OBSERVED, StoredDisplayName } from '../kit/fields.ts'
import { AGE, READY, TITLE, ZONE } from '../kit/columns.ts'

const Identifier = z.string().min(1).max(63).regex(IDENTIFIER_PATTERN)

const Moment = z.string().max(64).meta({ format: 'date-time' })
const Backups = z.strictObject({
  isOpen: z.boolean().describe('Whether there is an archive.'),
  failure: z.string().max(1024).describe('Reason why the last attempt to archive failed; empty when it did not.'),
  observedAt: Moment.describe('Time of the last look at the archive.'),
  earliestAt: Moment.optional().describe('Earliest restorable time; absent when there is none.'),
  latestAt: Moment.optional().describe('Latest restorable time.'),
  gaps: z
    .array(
      z.strictObject({
        from: Moment.describe('Last restorable time before the gap.'),
        to: Moment.describe('First restorable time after the gap.'),
      }),
    )
    .max(ARCHIVE_GAPS_MAXIMUM)
    .describe('Gaps to which it cannot be restored.'),
  shortenedAt: Moment.optional().describe(
    'Time when the full archive removed a backup early; absent when no backup is missing now.',
  ),
  pause: z
    .strictObject({
      state: z.enum(['paused', 'resuming']).describe('Whether archiving is paused, or a new full backup is running.'),
      reason: z.enum(ARCHIVE_PAUSE_REASONS).describe('Reason for the pause.'),
      since: Moment.describe('When it was paused.'),
      from: Moment.optional().describe('Latest restorable time; absent when there is none.'),
    })
    .optional()
    .describe('Pause of archiving and its gap; absent while everything is archived.'),
  backups: z
    .array(
      z.strictObject({
        label: z.string().max(64).describe('Name in the archive.'),
        startedAt: Moment.describe('Time when it started.'),
        completedAt: Moment.describe('Time when it was complete.'),
        bytes: z.int().min(0).describe('Size in bytes.'),
        isRestorable: z.boolean().describe('Whether the database can be restored from it.'),
      }),
    )
    .max(ARCHIVE_BACKUPS_MAXIMUM)
    .describe('Full backups, oldest first.'),
})

export const Database = resource({
  kind: 'Database',
  plural: 'databases',
  shortNames: ['db'],
  scope: 'Namespaced',
  customers: 'write',
  description:
    'PostgreSQL on a machine of the platform, with its data on a separate storage. Clients connect over TLS from ' +
    'a private network. The API returns the password of the owner role.',
  spec: z
    .strictObject({
      zone: ZoneName.describe('Zone of the database.'),
      name: StoredDisplayName.describe('Display name, unique among the databases of the account.'),
      networkId: z.string().min(1).max(253).describe('Name of the Network from which clients connect.'),
      plan: z.enum(DATABASE_PLANS).default('db-1c-2g').describe('Plan of its machine.'),
      storageGibibytes: z
        .int()
        .min(DATABASE_STORAGE_GIBIBYTES.least)
        .max(DATABASE_STORAGE_GIBIBYTES.most)
        .default(DATABASE_STORAGE_GIBIBYTES.default)
        .describe('Size of its storage in GiB.'),
      databaseName: Identifier.describe('Name of the database in PostgreSQL.'),
      ownerName: Identifier.describe('PostgreSQL role that owns the database and signs in.'),
      backupSchedule: z
        .string()
        .max(BACKUP_SCHEDULE_CHARACTERS_MAXIMUM)
        .default(DATABASE_SCHEDULE_DEFAULT)
        .describe('Schedule of full backups: five cron fields, in UTC, at most once a day.'),
      backupRetentionDays: z
        .int()
        .min(DATABASE_RETENTION_DAYS.least)
        .max(DATABASE_RETENTION_DAYS.most)
        .default(DATABASE_RETENTION_DAYS.default)
        .describe('Days for which backups are kept.'),
      isProtected: z.boolean().default(false).describe('Whether deletion is refused.'),
      restoredFrom: z
        .strictObject({
          databaseId: z.string().min(1).max(253).describe('Name of the Database, which may be deleted already.'),
          targetTime: z.iso.datetime().optional().describe('Time to restore to; the latest when absent.'),
        })
        .optional()
        .describe('Database of the account, and point in time, from which this one is created.'),
      passwordGeneration: z
        .int()
        .min(1)
        .default(1)
        .describe("Generation of the owner's password. Written by the platform only."),
      operation: RequestedOrEditedOperation,
    })
    .describe('The desired state of the database.'),
  status: z
    .strictObject({
      ...OBSERVED,
      isMade: z.boolean().optional().describe('Whether PostgreSQL has run on its machine once.'),
      isLost: z.boolean().optional().describe('Whether the storage with its data is lost.'),
      isHealthy: z
        .boolean()
        .optional()
        .describe(
          'Whether its machine runs PostgreSQL as desired, and the owner role can sign in with the credentials.',
        ),
      hasStaleCredentials: z
        .boolean()
        .optional()
        .describe('Whether the credentials no longer work because somebody changed the role by SQL.'),
      healthDetail: z
        .string()
        .max(1024)
        .optional()
        .describe('Human-readable description of the problem; empty when there is none.'),
      host: AddressText.optional().describe('Its address in the network.'),
      isConfigurationApplied: z.boolean().optional().describe('Whether its machine runs its newest configuration.'),
      passwordGeneration: z
        .int()
        .optional()
        .describe('Generation of the password that its machine was last known to accept.'),
      imageVersion: z.string().max(63).optional().describe('Version of the image that its machine boots from.'),
      failedUpgrade: z
        .strictObject({
          imageVersion: z.string().max(63).describe('Version of the image.'),
          error: z.string().max(4096).describe('Human-readable reason.'),
        })
        .optional()
        .describe('Newer image with which its machine did not become healthy; it is not tried again.'),
      certificateExpiresAt: z
        .string()
        .max(64)
        .meta({ format: 'date-time' })
        .optional()
        .describe('Time when its certificate expires; it is replaced 30 days before.'),
      backups: Backups.optional().describe('Range of restorable times; absent without an archive.'),
      archiveBytes: z.int().min(0).optional().describe('Size of its archive in bytes.'),
      archiveMetered: Metered.optional().describe('Measured archive size that is billed.'),
      archiveState: z.enum(ARCHIVE_STATES).optional().describe('State of the archive.'),
      archiveObstacle: z
        .string()
        .max(1024)
        .optional()
        .describe('Human-readable reason why it has no archive and cannot be restored; empty otherwise.'),
      operation: ReportedOperation,
    })
    .describe('Observed state of the database. Written by its controller.'),
  columns: [
    TITLE,
    { name: 'Host', type: 'string', jsonPath: '.status.host' },
    { name: 'Healthy', type: 'boolean', jsonPath: '.status.isHealthy' },
    { name: 'Archive', type: 'string', jsonPath: '.status.archiveState' },
    ZONE,
    READY,
    AGE,
  ],
  selectableFields: ['.spec.zone'],
  fixed: ['zone', 'networkId', 'plan', 'storageGibibytes', 'databaseName', 'ownerName', 'restoredFrom'],
})
export type DatabaseSpec = z.infer<typeof Database.spec>
export type DatabaseStatus = z.infer<typeof Database.status>
