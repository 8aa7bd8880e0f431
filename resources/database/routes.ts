/** Managed databases as the API shows them: public shape, bridge from the stored one, routes. */
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
import { activeOperationOf, OperationView, toOperationView } from '../operation/index.ts'
import { completeListOf, DateTime, Id, PrintableName, type Stored, ZoneName } from '../kit/shapes.ts'
import { verbsOf } from '../kit/verbs.ts'
import { viewOf } from '../kit/view.ts'
import type { DatabaseSpec, DatabaseStatus } from './stored.ts'

const ArchivePauseView = z.strictObject({
  paused_at: DateTime.describe('When archiving was paused.'),
  reason: z
    .enum(ARCHIVE_PAUSE_REASONS)
    .describe('Whether the archive is full, or what waited for it was filling the storage of the database.'),
  gap_from: DateTime.nullable().describe(
    'The last moment that it can be restored to: the gap ends with the next full backup. Null when there is none.',
  ),
})

const BackupSummary = z.strictObject({
  is_enabled: z.boolean().describe('Whether there is an archive that it can be restored from.'),
  retention_days: z.int().describe('For how many days backups are kept.'),
  earliest_recoverable_at: DateTime.nullable().describe('The first moment that it can be restored to.'),
  latest_recoverable_at: DateTime.nullable().describe('The last moment that it can be restored to.'),
  observed_at: DateTime.nullable().describe('When the archive was looked at; null when it never was.'),
  archive_failure: z
    .string()
    .describe('Why the last attempt to archive failed, or why the zone has no archive; empty otherwise.'),
  shortened_at: DateTime.nullable().describe(
    'When the full archive removed a backup before its time; null when none is missing now.',
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
    owner_name: z.string().describe('Role that owns the database and signs in.'),
    host: z.string().nullable().describe('Address in its network; null until its machine is placed.'),
    port: z.int().describe('Where it listens.'),
    connection_uri: z.string().nullable().describe('For clients, without the password; null until there is a host.'),
    state: z.enum(DATABASE_STATES),
    is_healthy: z.boolean().describe('Whether its machine runs PostgreSQL as desired.'),
    health_detail: z.string().describe('What is wrong, for people; empty otherwise.'),
    is_configuration_applied: z.boolean().describe('Whether its machine runs its newest configuration.'),
    backup_schedule: z.string().describe('When full backups are made: five fields as cron has them, in UTC.'),
    backups: BackupSummary.describe('What it can be restored to.'),
    archive_state: z.enum(ARCHIVE_STATES).describe('How its archive is.'),
    archive_pause: ArchivePauseView.nullable().describe('What is not archived; null while everything is.'),
    tls_server_name: z.string().describe('DNS name in its certificate, beside the address.'),
    certificate_expires_at: DateTime.nullable().describe('When its certificate expires; renewed 30 days before.'),
    ca_certificate: z
      .string()
      .nullable()
      .optional()
      .describe('Certificate in PEM of who signs its certificate; only when one database is read.'),
    restored_from: z
      .strictObject({
        database_id: z.string(),
        target_time: DateTime.nullable().describe('The moment; null for the latest.'),
      })
      .nullable()
      .describe('What it was restored from; null when it was not.'),
    is_protected: z.boolean(),
    active_operation: OperationView.nullable(),
    created_at: DateTime,
  })
  .meta({ id: 'Database' })
export type DatabaseView = z.infer<typeof DatabaseView>
export type StoredDatabase = Stored<DatabaseSpec, DatabaseStatus>

/** `error` when its creation ended without a machine that ran, and when its data is lost. */
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
    active_operation: operation === undefined ? null : toOperationView(operation, { type: 'database', id }),
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
    username: z.string().describe('The owner of the database.'),
    password: z.string().describe('Of the owner.'),
    database_name: z.string().describe('Name of the database in PostgreSQL.'),
    host: z.string().nullable().describe('Address in its network; null until its machine is placed.'),
    port: z.int().describe('Where it listens.'),
    connection_uri: z.string().nullable().describe('For clients, with the password; null until there is a host.'),
    ca_certificate: z.string().describe('Certificate in PEM that clients verify the server by.'),
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
    owner_name: Identifier.optional().describe('The name of the database when left out.'),
    zone_redundant: z.boolean().default(false).describe('A replica in another zone; not offered yet.'),
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
    target_time: DateTime.nullable().default(null).describe('The moment; the latest when null.'),
    network_id: Id.optional().describe('That of the origin when left out.'),
    plan: PlanOf.optional().describe('That of the origin when left out.'),
    storage_gibibytes: StorageGibibytes.optional().describe('As much as the origin has when left out.'),
  })
  .meta({ id: 'RestoreDatabase' })

const Envelope = z.strictObject({ database: DatabaseView })
const Credentials = z.strictObject({ credentials: DatabaseCredentials })
const Started = Envelope.extend({ operation: OperationView, credentials: DatabaseCredentials })

const BackupView = z
  .strictObject({
    id: z.string(),
    kind: z.literal('full').describe('What it holds.'),
    started_at: DateTime.describe('When it began.'),
    completed_at: DateTime.nullable().describe('When it was whole; null while it is not.'),
    size_bytes: z.int().describe('What it takes in the archive, in bytes.'),
    is_restorable: z.boolean().describe('Whether the database can be restored from it.'),
  })
  .meta({ id: 'DatabaseBackup' })
const Window = z
  .strictObject({
    earliest_recoverable_at: DateTime.nullable().describe('The first moment that it can be restored to.'),
    latest_recoverable_at: DateTime.nullable().describe('The last moment that it can be restored to.'),
    gaps: z.array(z.strictObject({ from: DateTime, to: DateTime })).describe('Moments between that are lost.'),
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

const verbs = verbsOf({ path: '/v1/databases', area: 'Managed databases', noun: 'database', view: DatabaseView })

export const listDatabases = verbs.listWhole('list_databases', { summary: 'List databases' })

export const createDatabase = verbs.create('create_database', {
  summary: 'Make a PostgreSQL database',
  description:
    'One machine with its data on a separate storage, reached over TLS from the network. The answer has the ' +
    'password of its owner.',
  needs: 'standing',
  starts: ['database.create'],
  body: CreateDatabase,
  example: { zone: 'eu-1a', name: 'shop', network_id: EXAMPLE.id, database_name: 'shop' },
  secretFields: ['credentials'],
  answers: { 202: Started },
  refuses: [400, 402, 404, 409, 422, 501, 503],
})

export const getDatabase = verbs.read('get_database', { summary: 'Read a database' })

export const updateDatabase = verbs.change('update_database', {
  summary: 'Change name, backups or protection of a database',
  description: 'With If-Match the change is made only to that version.',
  body: UpdateDatabase,
  example: { backup_retention_days: 14 },
})

export const deleteDatabase = verbs.remove('delete_database', {
  summary: 'Delete a database with its machine and its data',
  description: 'Its backups are kept for keep_backups_days. One that is still being made can be deleted too.',
  starts: ['database.delete'],
  query: z.strictObject({
    keep_backups_days: z.coerce
      .number()
      .int()
      .min(KEEP_BACKUPS_DAYS.least)
      .max(KEEP_BACKUPS_DAYS.most)
      .default(KEEP_BACKUPS_DAYS.default)
      .describe('For how many days its backups stay restorable.'),
  }),
})

export const restoreDatabase = verbs.post('restore_database', '/{id}/restore', {
  summary: 'Restore a database to a moment, as a new one',
  description: 'From the archive of the database, also of a deleted one while its backups are kept.',
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
  description: 'Newest first, with the moments that it can be restored to.',
  answers: { 200: BackupsView },
})

export const getDatabaseCredentials = verbs.get('get_database_credentials', '/{id}/credentials', {
  summary: 'Read the password of a database',
  permission: 'operate',
  isCredentialRead: true,
  audit: 'database.credentials',
  answers: { 200: Credentials },
  refuses: [404, 409, 503],
})

export const rotateDatabaseCredentials = verbs.post('rotate_database_credentials', '/{id}/rotate-credentials', {
  summary: 'Replace the password of a database',
  description: 'Answered once its machine refuses the old password. Open sessions of its owner are ended.',
  audit: 'database.rotate_credentials',
  isDestructive: true,
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
