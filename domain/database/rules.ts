/** Managed databases: sizes, names, and when which change is allowed. */
import { parseBackupSchedule } from '../backup/schedule.ts'
import { badField, conflict, operationInProgress } from '../problem.ts'

export const DATABASE_ENGINE = 'postgresql-17'
export const DATABASE_PORT = 5_432
export const DATABASE_PLANS = ['db-1c-2g', 'db-2c-4g', 'db-4c-8g'] as const
export type DatabasePlan = (typeof DATABASE_PLANS)[number]
export const isDatabasePlan = (name: string): boolean => DATABASE_PLANS.some((plan) => plan === name)
const MEBIBYTES: Readonly<Record<DatabasePlan, number>> = { 'db-1c-2g': 2_048, 'db-2c-4g': 4_096, 'db-4c-8g': 8_192 }
export const DATABASE_STATES = ['creating', 'running', 'error', 'deleting'] as const
export type DatabaseState = (typeof DATABASE_STATES)[number]
/** Its write-ahead log alone may take 1 GiB. */
export const DATABASE_STORAGE_GIBIBYTES = { least: 5, most: 4_096, default: 10 } as const
export const DATABASE_RETENTION_DAYS = { least: 7, most: 35, default: 7 } as const
export const KEEP_BACKUPS_DAYS = { least: 0, most: 35, default: 7 } as const
export const DATABASE_SCHEDULE_DEFAULT = '0 3 * * *'
export const CERTIFICATE_DAYS = 365
/** How long before it expires a certificate is replaced. */
export const RENEW_DAYS = 30
/** The role of its only machine. */
export const DATABASE_ROLE = 'primary'

/** Names that PostgreSQL accepts without quotes, so that nobody has to write any. */
export const IDENTIFIER_PATTERN = /^[a-z_][a-z0-9_]{0,62}$/
const RESERVED_NAMES = ['postgres', 'template0', 'template1', 'public', 'none']

/** Why no database or role can have that name; undefined when one can. */
export function identifierFault(text: string): string | undefined {
  if (!IDENTIFIER_PATTERN.test(text))
    return 'must be 1 to 63 lower-case letters, digits and underscores, and begin with no digit'
  return RESERVED_NAMES.includes(text) || text.startsWith('pg_')
    ? 'is a name that PostgreSQL keeps for itself'
    : undefined
}

/** Why backups cannot be scheduled at that time; undefined when they can: once a day. */
export function dailyScheduleFault(text: string): string | undefined {
  const schedule = parseBackupSchedule(text)
  if ('fault' in schedule) return schedule.fault
  const isDaily = schedule.hours.length === 1 && /^\S+\s+\S+\s+\*\s+\*\s+\*$/.test(text.trim())
  return isDaily ? undefined : 'must name one minute of one hour of every day, such as "30 3 * * *"'
}

/** How PostgreSQL uses the machine of the plan. In the worst case, the memory of sessions fits beside the buffers. */
export function serverSettings(plan: DatabasePlan): Readonly<Record<string, string>> {
  const mebibytes = MEBIBYTES[plan]
  const part = (divisor: number): string => `${Math.floor(mebibytes / divisor)}MB`
  return {
    max_connections: String(mebibytes / 20 - ((mebibytes / 20) % 100)),
    shared_buffers: part(4),
    effective_cache_size: part(2),
    maintenance_work_mem: part(16),
    work_mem: '4MB',
    max_wal_size: '1GB',
    random_page_cost: '1.1',
  }
}

/** When full backups are taken each day, in UTC. The schedule must be valid. */
export function fullBackupAt(schedule: string): { readonly hour: number; readonly minute: number } {
  const parsed = parseBackupSchedule(schedule)
  return 'fault' in parsed ? { hour: 0, minute: 0 } : { hour: parsed.hours[0] ?? 0, minute: parsed.minute }
}

const DAY_MILLISECONDS = 86_400_000
/** How long after the time of the daily backup a machine may be down for a newer image. */
export const UPGRADE_WINDOW_MINUTES = 120

/** When the window that contains the moment started; undefined outside of one. It starts with the daily backup, when
 *  the database is used least. */
export function upgradeWindowAt(schedule: string, now: Date): Date | undefined {
  const { hour, minute } = fullBackupAt(schedule)
  const today = new Date(now).setUTCHours(hour, minute, 0, 0)
  const began = today <= now.getTime() ? today : today - DAY_MILLISECONDS
  return now.getTime() - began < UPGRADE_WINDOW_MINUTES * 60_000 ? new Date(began) : undefined
}

/** `none` without an archive, `failing` while writes wait for the store, `paused` while nothing is archived, `resuming`
 *  until a full backup succeeds. */
export const ARCHIVE_STATES = ['none', 'archiving', 'failing', 'paused', 'resuming'] as const
export type ArchiveState = (typeof ARCHIVE_STATES)[number]
/** The archive has reached its quota, or unarchived data was filling the storage of the database. */
export const ARCHIVE_PAUSE_REASONS = ['archive_full', 'storage_nearly_full'] as const

/** A period in which nothing is archived. */
export interface ArchivePause {
  /** Archiving is being retried until a backup is complete: `resuming`. */
  readonly state: 'paused' | 'resuming'
  readonly reason: (typeof ARCHIVE_PAUSE_REASONS)[number]
  readonly since: string
  /** The last moment before the gap that can be restored; undefined when there was none. */
  readonly from?: string | undefined
}

/** What can be restored from an archive; moments are RFC 3339 in UTC. */
export interface DatabaseBackups {
  /** There is a repository. */
  readonly isOpen: boolean
  /** Why the last attempt to archive failed; empty when it succeeded. */
  readonly failure: string
  readonly observedAt: string
  /** The range of moments that can be restored, except for the gaps; undefined while none can. */
  readonly earliestAt?: string | undefined
  readonly latestAt?: string | undefined
  readonly gaps: readonly { readonly from: string; readonly to: string }[]
  /** When a full archive removed a backup early; undefined when none is missing now. */
  readonly shortenedAt?: string | undefined
  /** Undefined while everything is archived. */
  readonly pause?: ArchivePause | undefined
  /** Oldest first. */
  readonly backups: readonly {
    readonly label: string
    readonly startedAt: string
    readonly completedAt: string
    readonly bytes: number
    readonly isRestorable: boolean
  }[]
}

const HELD_HOURS = 24

/** How long the archive of a database is kept for a database that is being restored from it. */
export const heldUntil = (now: Date): Date => new Date(now.getTime() + HELD_HOURS * 3_600_000)

/** What remains of a deleted database in addition to its archive. */
export interface DatabaseOrigin {
  readonly name: string
  readonly networkId: string
  readonly plan: DatabasePlan
  readonly storageGibibytes: number
  readonly databaseName: string
  readonly ownerName: string
  readonly backups: DatabaseBackups
}

/** The state of the archive, as far as it is known; the obstacle is why there is none. */
export function archiveStateOf(
  backups: Pick<DatabaseBackups, 'isOpen' | 'failure' | 'pause'> | undefined,
  obstacle: string,
): ArchiveState {
  if (obstacle !== '' || backups?.isOpen !== true) return 'none'
  return backups.pause?.state ?? (backups.failure === '' ? 'archiving' : 'failing')
}

/** Throws 409 while nothing can be restored and for a moment that was not archived, and 400 for a moment outside the
 *  archive. Null is its end. */
export function requireReachable(
  { earliestAt, latestAt, gaps, pause }: Pick<DatabaseBackups, 'earliestAt' | 'latestAt' | 'gaps' | 'pause'>,
  target: string | null,
  field = 'target_time',
): void {
  if (earliestAt === undefined || latestAt === undefined)
    throw conflict('state_not_allowed', 'The database has no backup yet that it could be restored from.')
  if (target === null) return
  const at = Date.parse(target)
  if (pause !== undefined && at > Date.parse(latestAt))
    throw conflict(
      'state_not_allowed',
      `${field} cannot be ${target}: archiving is paused, and nothing after ${latestAt} is archived.`,
    )
  if (at < Date.parse(earliestAt) || at > Date.parse(latestAt))
    throw badField(field, `can be from ${earliestAt} to ${latestAt}`)
  const gap = gaps.find(({ from, to }) => at > Date.parse(from) && at < Date.parse(to))
  if (gap !== undefined)
    throw conflict(
      'state_not_allowed',
      `${field} cannot be ${target}: nothing was archived between ${gap.from} and ${gap.to}.`,
    )
}

/** The DNS name in its certificate. */
export const tlsServerName = (databaseId: string): string => `${databaseId}.database.internal`

export interface ConnectionTarget {
  readonly host: string
  readonly user: string
  readonly database: string
  readonly password?: string
}

/** Connections are verified: the authority's certificate must be known to the client. */
export function connectionUri({ host, user, database, password }: ConnectionTarget): string {
  const secret = password === undefined ? '' : `:${encodeURIComponent(password)}`
  return `postgresql://${user}${secret}@${host}:${DATABASE_PORT}/${database}?sslmode=verify-full`
}

export interface DatabaseFacts {
  readonly id: string
  readonly isProtected: boolean
  readonly isDeleting: boolean
  /** Its machine has run PostgreSQL once. */
  readonly isMade: boolean
  readonly activeOperation: { readonly id: string; readonly kind: string } | undefined
}

/** Throws 409 for a database that is being deleted. */
export function requireChangeableDatabase({ id, isDeleting, activeOperation }: DatabaseFacts): void {
  if (activeOperation?.kind === 'database.delete')
    throw operationInProgress(activeOperation.id, { type: 'database', id })
  if (isDeleting) throw conflict('state_not_allowed', 'The database is being deleted.')
}

/** Throws 409 until its machine has run once. */
export function requireMadeDatabase(facts: DatabaseFacts): void {
  requireChangeableDatabase(facts)
  if (!facts.isMade)
    throw conflict('state_not_allowed', 'The database is not running yet.', {
      resource: { type: 'database', id: facts.id },
    })
}

/** Throws 409 for a database that cannot be deleted. One that is still being created can: its creation stops. */
export function requireDeletableDatabase({ id, isProtected, activeOperation }: DatabaseFacts): void {
  if (activeOperation?.kind === 'database.delete')
    throw operationInProgress(activeOperation.id, { type: 'database', id })
  if (isProtected)
    throw conflict('protected', 'The database is protected. Lift the protection, then delete it.', {
      resource: { type: 'database', id },
    })
}
