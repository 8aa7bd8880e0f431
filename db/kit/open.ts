/** Opens the database: one pool, bigint as number, migrations forward under an advisory lock. */
import { readdir } from 'node:fs/promises'
import { join } from 'node:path'
import { CompiledQuery, Kysely, PostgresDialect, sql, type Transaction } from 'kysely'
import { type Migration, Migrator } from 'kysely/migration'
import pg from 'pg'
import { systemClock } from '../../kit/sys/clock.ts'
import { shared, shareOf } from './account-share.ts'
import { withDryRuns } from './dry-runs.ts'
import { traceQuery } from './trace.ts'
import type { Tables } from '../tables.ts'

export type Database = Kysely<Tables>
/** A transaction, or the database itself for single statements. */
export type Queries = Kysely<Tables> | Transaction<Tables>

/** The migrations of the folder, by name: forward only, in the order of their numbers, never edited once released. */
async function readMigrations(): Promise<Record<string, Migration>> {
  const migrations: Record<string, Migration> = {}
  for (const file of await readdir(join(import.meta.dirname, '../migrations'))) {
    const [name = ''] = file.split('.')
    migrations[name] = await import(`../migrations/${name}.ts`)
  }
  return migrations
}

/** Those of a later release that this database has: they are after all known ones, and nothing to do here. Without
 *  them, no process of this release could start beside the next one, or after it was taken back. */
async function readLaterMigrations(
  connection: Kysely<Tables>,
  known: Readonly<Record<string, Migration>>,
): Promise<Record<string, Migration>> {
  const last = Object.keys(known).toSorted().at(-1) ?? ''
  const { rows: tables } = await sql<{ isThere: boolean }>`
    select to_regclass('kysely_migration') is not null as "isThere"`.execute(connection)
  if (tables[0]?.isThere !== true) return {}
  const { rows } = await sql<{ name: string }>`select name from kysely_migration`.execute(connection)
  const later = rows.filter(({ name }) => !(name in known) && name > last)
  return Object.fromEntries(later.map(({ name }) => [name, { up: async () => {} }]))
}

const BIGINT_OID = 20
const parseBigint = (text: string): number => {
  const value = Number(text)
  if (!Number.isSafeInteger(value)) throw new RangeError(`bigint ${text} is not a safe integer`)
  return value
}

export interface DatabaseOptions {
  readonly url: string
  readonly connectionsMaximum: number
  /** How long a query waits for a connection. */
  readonly connectMillisecondsMaximum?: number
  /** Idle timeout of a transaction: one whose process was disconnected holds its row locks until then. */
  readonly idleTransactionMillisecondsMaximum?: number
  /** Called when a connection breaks, idle or in use; the pool replaces it by itself. */
  readonly onConnectionLost?: (error: unknown) => void
}

/** How columns are read: bigint as number. */
export const columnTypes: pg.CustomTypesConfig = {
  getTypeParser: ((oid: number, format?: 'text' | 'binary') =>
    // pg's overloads cannot be narrowed here
    oid === BIGINT_OID ? parseBigint : pg.types.getTypeParser(oid, format as 'text')) as typeof pg.types.getTypeParser,
}

const CONNECT_MILLISECONDS_MAXIMUM_DEFAULT = 10_000
const IDLE_TRANSACTION_MILLISECONDS_MAXIMUM_DEFAULT = 60_000

/** Connects when it is first used. */
export function openDatabase(options: DatabaseOptions): Database {
  const {
    connectMillisecondsMaximum = CONNECT_MILLISECONDS_MAXIMUM_DEFAULT,
    idleTransactionMillisecondsMaximum = IDLE_TRANSACTION_MILLISECONDS_MAXIMUM_DEFAULT,
  } = options
  const pool = new pg.Pool({
    connectionString: options.url,
    max: options.connectionsMaximum,
    types: columnTypes,
    connectionTimeoutMillis: connectMillisecondsMaximum,
    idle_in_transaction_session_timeout: idleTransactionMillisecondsMaximum,
  })
  // A connection that breaks in use reports it on the client only, and an unhandled error ends the
  // process.
  pool.on('connect', (client) => client.on('error', (error) => options.onConnectionLost?.(error)))
  pool.on('error', () => {}) // the client reports it too
  const share = {
    connectionsMaximum: shareOf(options.connectionsMaximum),
    waitMillisecondsMaximum: connectMillisecondsMaximum,
    after: systemClock.after,
  }
  const dialect = withDryRuns(new PostgresDialect({ pool: shared(pool, share) }))
  return new Kysely<Tables>({ dialect, log: traceQuery })
}

const MIGRATION_LOCK = 7_238_501

/** Brings the schema to the newest version that this release knows; a later one stays. Safe to call from several
 *  processes at once. */
export async function migrate(db: Database): Promise<void> {
  await db.connection().execute(async (connection) => {
    await connection.executeQuery(CompiledQuery.raw(`select pg_advisory_lock(${MIGRATION_LOCK})`))
    try {
      const own = await readMigrations()
      const migrations = { ...own, ...(await readLaterMigrations(connection, own)) }
      const migrator = new Migrator({ db: connection, provider: { getMigrations: async () => migrations } })
      const { error } = await migrator.migrateToLatest()
      if (error !== undefined) throw error
    } finally {
      await connection.executeQuery(CompiledQuery.raw(`select pg_advisory_unlock(${MIGRATION_LOCK})`))
    }
  })
}
