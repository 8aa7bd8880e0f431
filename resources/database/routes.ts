/** Public shape and routes of managed databases, and the conversion from the stored shape. */
import { z } from 'zod'
import {
  ARCHIVE_PAUSE_REASONS,
  ARCHIVE_STATES,
  archiveStateOf,
  connectionUri,
  dailyScheduleFault,
  DATABASE_ENGINE,
  DATABASE_PLANS,
  DATABASE_PORT,
  DATABASE_RETENTION_DAYS,
  DATABASE_STATES,
  DATABASE_STORAGE_GIBIBYTES,
  type DatabaseBackups,
  type DatabaseFacts,
  type DatabaseState,
  identifierFault,
  KEEP_BACKUPS_DAYS,
  tlsServerName,
} from '../../domain/database/rules.ts'
import { EXAMPLE } from '../kit/examples.ts'
import { activeOperationOf, OperationView, namedTarget, toOperationView } from '../operation/index.ts'
import { completeListOf, DateTime, Id, PrintableName, type Stored, ZoneName } from '../kit/shapes.ts'
import { verbsOf } from '../kit/verbs.ts'
import { viewOf } from '../kit/view.ts'
import type { DatabaseSpec, DatabaseStatus } from './stored.ts'

const ArchivePauseView = z.strictObject({
  paused_at: DateTime.describe('Time when archiving was paused.'),
  reason: z
    .enum(ARCHIVE_PAUSE_REASONS)
    .describe(
      'Whether the archive is full, or data that waited for the archive was filling the storage of the database.',
    ),
  gap_from: DateTime.nullable().describe(
    'Latest restorable time before the gap, which ends with the next full backup; null when there is none.',
  ),
})

const BackupSummary = z.strictObject({
  is_enabled: z.boolean().describe('Whether an archive exists to restore from.'),
  retention_days: z.int().describe('Days for which backups are kept.'),
  earliest_recoverable_at: DateTime.nullable().describe('Earliest restorable time.'),
  latest_recoverable_at: DateTime.nullable().describe('Latest restorable time.'),
  observed_at: DateTime.nullable().describe('Time of the last look at the archive; null before the first.'),
  archive_failure: z
    .string()
    .describe('Reason why the last attempt to archive failed, or why the zone has no archive; empty otherwise.'),
  shortened_at: DateTime.nullable().describe(
    'Time when the full archive removed a backup early; null when no backup is missing now.',
  ),
})

export const DatabaseView = z
  .strictObject({
    id: z.string(),
    zone: z.string(),
    name: z.string(),
    network_id: z.string(),
    engine: z.literal(DATABASE_ENGINE).describe('What runs.'),
    plan: z.string(),
    storage_gibibytes: z.int(),
    database_name: z.string().describe('Name of the database in PostgreSQL.'),
    owner_name: z.string().describe('PostgreSQL role that owns the database and signs in.'),
    host: z.string().nullable().describe('Address in its network; null until its machine is placed.'),
    port: z.int().describe('Port of PostgreSQL.'),
    connection_uri: z.string().nullable().describe('Connection URI without the password; null until there is a host.'),
    state: z.enum(DATABASE_STATES),
    is_healthy: z.boolean().describe('Whether its machine runs PostgreSQL as desired.'),
    health_detail: z.string().describe('Human-readable description of the problem; empty when there is none.'),
    is_configuration_applied: z.boolean().describe('Whether its machine runs its newest configuration.'),
    backup_schedule: z.string().describe('Schedule of full backups: five cron fields, in UTC.'),
    backups: BackupSummary.describe('Backups of the database.'),
    archive_state: z.enum(ARCHIVE_STATES).describe('State of the archive.'),
    archive_pause: ArchivePauseView.nullable().describe(
      'Pause of archiving and its gap; null while everything is archived.',
    ),
    tls_server_name: z.string().describe('DNS name in its certificate, besides the address.'),
    certificate_expires_at: DateTime.nullable().describe(
      'Time when its certificate expires; it is renewed 30 days before.',
    ),
    ca_certificate: z
      .string()
      .nullable()
      .optional()
      .describe('PEM of the CA that signs its certificate; only when a single database is read.'),
    restored_from: z
      .strictObject({
        database_id: z.string().describe('Database that it was restored from.'),
        target_time: DateTime.nullable().describe('Restored time; null for the latest.'),
      })
      .nullable()
      .describe('Database and time that it was restored from; null when it was not restored.'),
    is_protected: z.boolean(),
    active_operation: OperationView.nullable(),
    created_at: DateTime,
  })
  .meta({ id: 'Database' })
export type DatabaseView = z.infer<typeof DatabaseView>
export type StoredDatabase = Stored<DatabaseSpec, DatabaseStatus>

/** `error` when its creation ended without a machine that ran, or when its data is lost. */
export function databaseStateOf({ spec, status, isDeleting }: StoredDatabase): DatabaseState {
  if (isDeleting || spec.operation?.kind === 'database.delete') return 'deleting'
  if (status?.isLost === true) return 'error'
  if (status?.isMade === true) return 'running'
  return status?.operation?.status === 'failed' && status.operation.id === spec.operation?.id ? 'error' : 'creating'
}

export function toDatabaseView(database: StoredDatabase): DatabaseView {
  const { name: id, spec, status, createdAt } = database
  const operation = activeOperationOf(database)
  const host = status?.host
  return viewOf(DatabaseView, spec, {
    id,
    engine: DATABASE_ENGINE,
    host: host ?? null,
    port: DATABASE_PORT,
    connection_uri:
      host === undefined ? null : connectionUri({ host, user: spec.ownerName, database: spec.databaseName }),
    state: databaseStateOf(database),
    is_healthy: status?.isHealthy ?? false,
    health_detail: status?.healthDetail ?? '',
    is_configuration_applied: status?.isConfigurationApplied ?? false,
    backups: {
      is_enabled: !status?.archiveObstacle && (status?.backups?.isOpen ?? false),
      retention_days: spec.backupRetentionDays,
      earliest_recoverable_at: status?.backups?.earliestAt ?? null,
      latest_recoverable_at: status?.backups?.latestAt ?? null,
      observed_at: status?.backups?.observedAt ?? null,
      archive_failure: status?.archiveObstacle || (status?.backups?.failure ?? ''),
      shortened_at: status?.backups?.shortenedAt ?? null,
    },
    archive_state: archiveStateOf(status?.backups, status?.archiveObstacle ?? ''),
    archive_pause: archivePauseOf(status?.backups),
    tls_server_name: tlsServerName(id),
    certificate_expires_at: status?.certificateExpiresAt ?? null,
    restored_from:
      spec.restoredFrom === undefined
        ? null
        : { database_id: spec.restoredFrom.databaseId, target_time: spec.restoredFrom.targetTime ?? null },
    active_operation: operation === undefined ? null : toOperationView(operation, namedTarget('database', database)),
    created_at: createdAt,
  })
}

const archivePauseOf = (backups: DatabaseBackups | undefined): DatabaseView['archive_pause'] =>
  backups?.pause === undefined
    ? null
    : { paused_at: backups.pause.since, reason: backups.pause.reason, gap_from: backups.pause.from ?? null }

export function databaseFactsOf(database: StoredDatabase): DatabaseFacts {
  const { name: id, spec, status, isDeleting } = database
  const operation = activeOperationOf(database)
  return {
    id,
    isProtected: spec.isProtected,
    isDeleting,
    isMade: status?.isMade === true,
    activeOperation: operation && { id: operation.id, kind: operation.kind },
  }
}

export const DatabaseCredentials = z
  .strictObject({
    username: z.string().describe('Role that owns the database.'),
    password: z.string().describe('Password of that role.'),
    database_name: z.string().describe('Name of the database in PostgreSQL.'),
    host: z.string().nullable().describe('Address in its network; null until its machine is placed.'),
    port: z.int().describe('Port of PostgreSQL.'),
    connection_uri: z.string().nullable().describe('Connection URI with the password; null until there is a host.'),
    ca_certificate: z.string().describe('PEM of the CA with which clients verify the server.'),
  })
  .meta({ id: 'DatabaseCredentials' })
export type DatabaseCredentials = z.infer<typeof DatabaseCredentials>

const faultless = (faultOf: (text: string) => string | undefined) =>
  z
    .string()
    .min(1)
    .max(64)
    .superRefine((text, context) => {
      const message = faultOf(text)
      if (message !== undefined) context.addIssue({ code: 'custom', message })
    })
const Identifier = faultless(identifierFault)
const Schedule = faultless(dailyScheduleFault)
const PlanOf = z.enum(DATABASE_PLANS)
const StorageGibibytes = z.int().min(DATABASE_STORAGE_GIBIBYTES.least).max(DATABASE_STORAGE_GIBIBYTES.most)

export const CreateDatabase = z
  .strictObject({
    zone: ZoneName,
    name: PrintableName,
    network_id: Id,
    plan: PlanOf.default('db-1c-2g'),
    storage_gibibytes: StorageGibibytes.default(DATABASE_STORAGE_GIBIBYTES.default),
    database_name: Identifier.describe('Name of the database in PostgreSQL.'),
    owner_name: Identifier.optional().describe('Defaults to database_name.'),
    is_protected: z.boolean().default(false),
    zone_redundant: z.boolean().default(false).describe('Replica in another zone; not available yet.'),
  })
  .meta({ id: 'CreateDatabase' })
export const UpdateDatabase = z
  .strictObject({
    name: PrintableName.optional(),
    backup_schedule: Schedule.optional(),
    backup_retention_days: z.int().min(DATABASE_RETENTION_DAYS.least).max(DATABASE_RETENTION_DAYS.most).optional(),
    is_protected: z.boolean().optional(),
  })
  .meta({ id: 'UpdateDatabase' })
export type UpdateDatabase = z.infer<typeof UpdateDatabase>
export const RestoreDatabase = z
  .strictObject({
    name: PrintableName,
    target_time: DateTime.nullable().default(null).describe('Time to restore to; null for the latest.'),
    network_id: Id.optional().describe('Defaults to the network of the original database.'),
    plan: PlanOf.optional().describe('Defaults to the plan of the original database.'),
    storage_gibibytes: StorageGibibytes.optional().describe('Defaults to the size of the original database.'),
    is_protected: z.boolean().default(false),
  })
  .meta({ id: 'RestoreDatabase' })

const Envelope = z.strictObject({ database: DatabaseView })
const Credentials = z.strictObject({ credentials: DatabaseCredentials })
const Started = Envelope.extend({ operation: OperationView, credentials: DatabaseCredentials })

const BackupView = z
  .strictObject({
    id: z.string(),
    kind: z.literal('full').describe('Kind of backup.'),
    started_at: DateTime.describe('Time when it started.'),
    completed_at: DateTime.nullable().describe('Time when it was complete; null until then.'),
    size_bytes: z.int().describe('Size in the archive, in bytes.'),
    is_restorable: z.boolean().describe('Whether the database can be restored from it.'),
  })
  .meta({ id: 'DatabaseBackup' })
const Window = z
  .strictObject({
    earliest_recoverable_at: DateTime.nullable().describe('Earliest restorable time.'),
    latest_recoverable_at: DateTime.nullable().describe('Latest restorable time.'),
    gaps: z
      .array(z.strictObject({ from: DateTime, to: DateTime }))
      .describe('Periods in between to which it cannot be restored.'),
  })
  .meta({ id: 'RecoveryWindow' })

const BackupsView = completeListOf(BackupView).extend({ window: Window })

/** Newest first. */
export const toBackupsView = (backups: DatabaseBackups | undefined): z.infer<typeof BackupsView> => ({
  items: (backups?.backups ?? []).toReversed().map(({ label, startedAt, completedAt, bytes, isRestorable }) => ({
    id: label,
    kind: 'full',
    started_at: startedAt,
    completed_at: completedAt,
    size_bytes: bytes,
    is_restorable: isRestorable,
  })),
  next_cursor: null,
  window: {
    earliest_recoverable_at: backups?.earliestAt ?? null,
    latest_recoverable_at: backups?.latestAt ?? null,
    gaps: [...(backups?.gaps ?? [])],
  },
})

const verbs = verbsOf({ path: '/v1/databases', noun: 'database', view: DatabaseView })

export const listDatabases = verbs.listWhole('list_databases', { summary: 'List databases' })

export const createDatabase = verbs.create('create_database', {
  summary: 'Create a PostgreSQL database',
  description:
    'Runs on one machine with its data on a separate storage. Clients connect over TLS from the network. The ' +
    'answer contains the password of the owner role.',
  needs: 'standing',
  starts: ['database.create'],
  body: CreateDatabase,
  example: { zone: 'eu-1a', name: 'shop', network_id: EXAMPLE.id, database_name: 'shop' },
  secretFields: ['credentials'],
  answers: { 202: Started },
  refuses: [400, 402, 404, 409, 422, 501, 503],
})

export const getDatabase = verbs.read('get_database', { summary: 'Get a database' })

export const updateDatabase = verbs.change('update_database', {
  summary: 'Update name, backups or protection of a database',
  description: 'With If-Match only that version is changed.',
  body: UpdateDatabase,
  example: { backup_retention_days: 14 },
})

export const deleteDatabase = verbs.remove('delete_database', {
  summary: 'Delete a database with its machine and its data',
  description: 'Its backups are kept for keep_backups_days. A database that is still being created can be deleted too.',
  starts: ['database.delete'],
  query: z.strictObject({
    keep_backups_days: z.coerce
      .number()
      .int()
      .min(KEEP_BACKUPS_DAYS.least)
      .max(KEEP_BACKUPS_DAYS.most)
      .default(KEEP_BACKUPS_DAYS.default)
      .describe('Days for which its backups remain restorable.'),
  }),
})

export const restoreDatabase = verbs.post('restore_database', '/{id}/restore', {
  summary: 'Restore a database to a point in time as a new database',
  description:
    'Restores from the archive of the database. A deleted database can be restored while its backups are kept.',
  needs: 'standing',
  starts: ['database.restore'],
  body: RestoreDatabase,
  example: { name: 'shop before the mistake', target_time: '2026-01-01T12:00:00Z' },
  secretFields: ['credentials'],
  answers: { 202: Started },
  refuses: [400, 402, 404, 409, 422, 503],
})

export const listDatabaseBackups = verbs.get('list_database_backups', '/{id}/backups', {
  summary: 'List the backups of a database',
  description: 'Newest first, with the range of restorable times.',
  answers: { 200: BackupsView },
})

export const getDatabaseCredentials = verbs.get('get_database_credentials', '/{id}/credentials', {
  summary: 'Get the password of a database',
  permission: 'operate',
  isCredentialRead: true,
  audit: 'database.credentials',
  answers: { 200: Credentials },
  refuses: [404, 409, 503],
})

export const rotateDatabaseCredentials = verbs.post('rotate_database_credentials', '/{id}/rotate-credentials', {
  summary: 'Replace the password of a database',
  description: 'Answers when the machine refuses the old password. Open sessions of the owner role are closed.',
  audit: 'database.rotate_credentials',
  isDestructive: true,
  noDryRun: 'the machine of the database applies the password',
  secretFields: ['credentials'],
  answers: { 200: Envelope.extend({ credentials: DatabaseCredentials }) },
  refuses: [404, 409, 503],
})

export const DATABASE_ROUTES = [
  listDatabases,
  createDatabase,
  getDatabase,
  updateDatabase,
  deleteDatabase,
  restoreDatabase,
  listDatabaseBackups,
  getDatabaseCredentials,
  rotateDatabaseCredentials,
] as const
