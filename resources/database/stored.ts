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
import { fixed, resource } from '../kit/define.ts'
import {
  Conditions,
  Metered,
  ObservedGeneration,
  ReportedOperation,
  RequestedOrEditedOperation,
  ZoneName,
} from '../kit/shapes.ts'

const ADDRESS_LENGTH_MAXIMUM = 45
const GAPS_MAXIMUM = 16
const BACKUPS_MAXIMUM = 64
const Identifier = z.string().min(1).max(63).regex(IDENTIFIER_PATTERN)

const Moment = z.string().max(64).meta({ format: 'date-time' })
const Backups = z.strictObject({
  isOpen: z.boolean().describe('Whether there is an archive.'),
  failure: z.string().max(1024).describe('Why the last attempt to archive failed; empty when it did not.'),
  observedAt: Moment.describe('When the archive was looked at.'),
  earliestAt: Moment.optional().describe('The first moment that it can be restored to; absent while there is none.'),
  latestAt: Moment.optional().describe('The last moment that it can be restored to.'),
  gaps: z
    .array(
      z.strictObject({
        from: Moment.describe('The last moment before.'),
        to: Moment.describe('The first moment after.'),
      }),
    )
    .max(GAPS_MAXIMUM)
    .describe('Between what moments it cannot.'),
  shortenedAt: Moment.optional().describe(
    'When the full archive removed a backup before its time; absent when none is missing now.',
  ),
  pause: z
    .strictObject({
      state: z.enum(['paused', 'resuming']).describe('Whether archiving is paused, or a full backup is made again.'),
      reason: z.enum(ARCHIVE_PAUSE_REASONS).describe('Why it was paused.'),
      since: Moment.describe('When it was paused.'),
      from: Moment.optional().describe('The last moment that it can be restored to; absent when there is none.'),
    })
    .optional()
    .describe('What is not archived; absent while everything is.'),
  backups: z
    .array(
      z.strictObject({
        label: z.string().max(64).describe('As the archive calls it.'),
        startedAt: Moment.describe('When it began.'),
        completedAt: Moment.describe('When it was whole.'),
        bytes: z.int().min(0).describe('What it takes.'),
        isRestorable: z.boolean().describe('Whether the database can be restored from it.'),
      }),
    )
    .max(BACKUPS_MAXIMUM)
    .describe('Full backups, oldest first.'),
})

export const Database = resource({
  kind: 'Database',
  plural: 'databases',
  shortNames: ['db'],
  scope: 'Namespaced',
  customers: 'write',
  description:
    'PostgreSQL on a machine of the platform, with its data on a separate storage, reached over TLS from a private ' +
    'network. The password of its owner is read through the API.',
  spec: z
    .strictObject({
      zone: ZoneName.describe('Zone that it is in. Cannot be changed.'),
      name: z.string().min(1).max(100).describe('Name for people, unique among the databases of the account.'),
      networkId: z.string().min(1).max(253).describe('Name of the Network that it is reached from. Cannot be changed.'),
      plan: z.enum(DATABASE_PLANS).default('db-1c-2g').describe('Plan of its machine. Cannot be changed.'),
      storageGibibytes: z
        .int()
        .min(DATABASE_STORAGE_GIBIBYTES.least)
        .max(DATABASE_STORAGE_GIBIBYTES.most)
        .default(DATABASE_STORAGE_GIBIBYTES.default)
        .describe('Size of its storage in GiB. Cannot be changed.'),
      databaseName: Identifier.describe('Name of the database in PostgreSQL. Cannot be changed.'),
      ownerName: Identifier.describe('Role that owns it and signs in. Cannot be changed.'),
      backupSchedule: z
        .string()
        .max(BACKUP_SCHEDULE_CHARACTERS_MAXIMUM)
        .default(DATABASE_SCHEDULE_DEFAULT)
        .describe('When full backups are made: five fields as cron has them, in UTC, once in a day.'),
      backupRetentionDays: z
        .int()
        .min(DATABASE_RETENTION_DAYS.least)
        .max(DATABASE_RETENTION_DAYS.most)
        .default(DATABASE_RETENTION_DAYS.default)
        .describe('For how many days backups are kept.'),
      isProtected: z.boolean().default(false).describe('Whether it refuses to be deleted.'),
      restoredFrom: z
        .strictObject({
          databaseId: z.string().min(1).max(253).describe('Name of the Database, which may be deleted.'),
          targetTime: z.iso.datetime().optional().describe('The moment; the latest when absent.'),
        })
        .optional()
        .describe('What it begins as: that database of the account at that moment. Cannot be changed.'),
      passwordGeneration: z
        .int()
        .min(1)
        .default(1)
        .describe('Which password of the owner holds. Written by the platform only.'),
      operation: RequestedOrEditedOperation,
    })
    .describe('The desired state of the database.'),
  status: z
    .strictObject({
      observedGeneration: ObservedGeneration,
      conditions: Conditions.optional(),
      isMade: z.boolean().optional().describe('Whether PostgreSQL has run on its machine once.'),
      isLost: z.boolean().optional().describe('Whether the storage with its data is lost.'),
      isHealthy: z
        .boolean()
        .optional()
        .describe('Whether its machine runs PostgreSQL as desired, and its owner gets in with the credentials.'),
      hasStaleCredentials: z
        .boolean()
        .optional()
        .describe('Whether its owner no longer gets in with the credentials: somebody changed them by SQL.'),
      healthDetail: z.string().max(1024).optional().describe('What is wrong, for people; empty otherwise.'),
      host: z.string().max(ADDRESS_LENGTH_MAXIMUM).optional().describe('Its address in the network.'),
      isConfigurationApplied: z.boolean().optional().describe('Whether its machine runs its newest configuration.'),
      passwordGeneration: z.int().optional().describe('The password that its machine was last known to take.'),
      imageVersion: z.string().max(63).optional().describe('Version of the image that its machine boots from.'),
      failedUpgrade: z
        .strictObject({
          imageVersion: z.string().max(63).describe('Version of the image.'),
          error: z.string().max(4096).describe('Why, for people.'),
        })
        .optional()
        .describe('The newer image that its machine did not become healthy with; it is not tried again.'),
      certificateExpiresAt: z
        .string()
        .max(64)
        .meta({ format: 'date-time' })
        .optional()
        .describe('When its certificate expires; it is replaced 30 days earlier.'),
      backups: Backups.optional().describe('What it can be restored to; absent without an archive.'),
      archiveBytes: z.int().min(0).optional().describe('How much its archive holds.'),
      archiveMetered: Metered.optional().describe('What its archive is billed by.'),
      archiveState: z.enum(ARCHIVE_STATES).optional().describe('How its archive is.'),
      archiveObstacle: z
        .string()
        .max(1024)
        .optional()
        .describe('Why it has no archive and cannot be restored, for people; empty otherwise.'),
      operation: ReportedOperation,
    })
    .describe('What the database is. Written by its controller.'),
  columns: [
    { name: 'Title', type: 'string', jsonPath: '.spec.name' },
    { name: 'Host', type: 'string', jsonPath: '.status.host' },
    { name: 'Healthy', type: 'boolean', jsonPath: '.status.isHealthy' },
    { name: 'Archive', type: 'string', jsonPath: '.status.archiveState' },
    { name: 'Zone', type: 'string', jsonPath: '.spec.zone' },
    { name: 'Ready', type: 'string', jsonPath: '.status.conditions[?(@.type=="Ready")].status' },
    { name: 'Age', type: 'date', jsonPath: '.metadata.creationTimestamp' },
  ],
  selectableFields: ['.spec.zone'],
  rules: ['zone', 'networkId', 'plan', 'storageGibibytes', 'databaseName', 'ownerName', 'restoredFrom'].map(fixed),
})
export type DatabaseSpec = z.infer<typeof Database.spec>
export type DatabaseStatus = z.infer<typeof Database.status>
