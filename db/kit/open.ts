/** Opens the database: one pool, bigint as number. */
import { Kysely, PostgresDialect, type Transaction } from 'kysely'
import pg from 'pg'
import { systemClock } from '../../kit/sys/clock.ts'
import { shared, shareOf } from './account-share.ts'
import { withDryRuns } from './dry-runs.ts'
import { traceQuery } from './trace.ts'
import type { Tables } from '../tables.ts'

export type Database = Kysely<Tables>
/** A transaction, or the database itself for single statements. */
export type Queries = Kysely<Tables> | Transaction<Tables>

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
