/** Migrations: forward only, in the order of their numbers, by one process at a time, never edited once released. Other
 *  processes go on with the database meanwhile: no step makes them wait for longer than a moment. */
import { readdir } from 'node:fs/promises'
import { join } from 'node:path'
import { type Kysely, sql } from 'kysely'
import { systemClock } from '../../kit/sys/clock.ts'
import { numberBetween, systemRandom } from '../../kit/sys/random.ts'
import type { Tables } from '../tables.ts'
import type { Database } from './open.ts'

export interface Migration {
  up(db: Kysely<unknown>): Promise<void>
  /** Its statements run one by one, without a transaction, and again from the first one after a failure: for indexes of
   *  tables that are in use (`createIndexes`), and for changes of many rows. */
  readonly isResumable?: boolean
  /** For a migration that takes away what earlier processes use: the name of the migration that replaced it. Processes
   *  that do not know that one no longer start afterwards. It runs only when an upgrade is finished. */
  readonly finishes?: string
}

/** The database was changed so that processes of this release cannot use it; the message is for people. */
export class SchemaIsNewer extends Error {}

export interface MigrationOptions {
  /** Also those migrations that end the work of earlier releases (`finishes`). */
  readonly isFinishing?: boolean
  readonly migrations?: Readonly<Record<string, Migration>>
  /** How long a statement waits for a lock of a table. All who come later wait behind it. */
  readonly lockMilliseconds?: number
  /** How long it pauses before it is tried again, until a migration is done, and how long another process may migrate.
   *  The time of the work itself does not count: an index can take hours. */
  readonly patienceMilliseconds?: number
}

const LOCK_MILLISECONDS = 2_000
const STATEMENT_MILLISECONDS_MAXIMUM = 300_000
const PATIENCE_MILLISECONDS = 600_000
const PAUSE_MILLISECONDS = { least: 100, most: 10_000 }
const MIGRATION_LOCK = 7_238_501
/** A lock that was not available, and a lost deadlock: an index waits for everybody who began before it. */
const LOCKED = ['55P03', '40P01']

/** The migrations of this release, by name. */
export async function readMigrations(): Promise<Readonly<Record<string, Migration>>> {
  const migrations: Record<string, Migration> = {}
  for (const file of (await readdir(join(import.meta.dirname, '../migrations'))).toSorted()) {
    const [name = ''] = file.split('.')
    migrations[name] = await import(`../migrations/${name}.ts`)
  }
  return migrations
}

/** The name of the newest migration that processes of this release know: what they can work with. */
export const levelOf = (migrations: Readonly<Record<string, Migration>>): string =>
  Object.keys(migrations).toSorted().at(-1) ?? ''

/** Brings the schema to the newest version that this release knows; a later one stays. Safe to call from several
 *  processes at once, and again after a kill. Throws the error of a step that failed, or that was locked out until the
 *  end of the patience, and SchemaIsNewer when the upgrade to a later release was finished. */
export async function migrate(db: Database, options: MigrationOptions = {}): Promise<void> {
  const migrations = options.migrations ?? (await readMigrations())
  const {
    isFinishing = false,
    lockMilliseconds = LOCK_MILLISECONDS,
    patienceMilliseconds = PATIENCE_MILLISECONDS,
  } = options
  await db.connection().execute(async (connection) => {
    // A limit of the role would stop a resumable step again and again.
    await sql`set statement_timeout = 0`.execute(connection)
    try {
      await patiently(patienceMilliseconds, (progress) =>
        inTurn(connection, async () => {
          for (const [name, migration] of await readPending(connection, migrations)) {
            if (migration.finishes !== undefined && !isFinishing) continue
            progress.next(`migration ${name}`)
            await run(connection, { name, migration, lockMilliseconds })
            progress.step()
          }
        }),
      )
    } finally {
      await sql`reset statement_timeout`.execute(connection)
    }
  })
}

/** Does the work under the lock, unless another process has it; returns whether it did. An index that is built
 *  concurrently waits for whoever waits inside of a statement. So the lock is only tried; and it is given back after a
 *  failure too, because processes of earlier releases wait for it inside of a statement. */
async function inTurn(connection: Kysely<Tables>, work: () => Promise<void>): Promise<boolean> {
  if (!(await tryLock(connection))) return false
  try {
    await work()
    return true
  } finally {
    await sql`select pg_advisory_unlock(${MIGRATION_LOCK})`.execute(connection)
  }
}

async function tryLock(connection: Kysely<Tables>): Promise<boolean> {
  const { rows } = await sql<{ isLocked: boolean }>`
    select pg_try_advisory_lock(${MIGRATION_LOCK}) as "isLocked"`.execute(connection)
  return rows[0]?.isLocked === true
}

interface Progress {
  /** Names what comes next. */
  next(what: string): void
  /** A migration is done: the patience begins again. */
  step(): void
}

/** Repeats the work until it succeeds, unless it fails otherwise than by a lock. */
async function patiently(milliseconds: number, work: (progress: Progress) => Promise<boolean>): Promise<void> {
  let what = 'another process migrates the database'
  let left = milliseconds
  let pause = PAUSE_MILLISECONDS.least
  let cause: unknown
  const progress: Progress = {
    next: (next) => {
      what = next
    },
    step: () => {
      left = milliseconds
      pause = PAUSE_MILLISECONDS.least
    },
  }
  for (; ; pause = Math.min(2 * pause, PAUSE_MILLISECONDS.most)) {
    try {
      if (await work(progress)) return
    } catch (error) {
      if (!isLocked(error)) throw error
      cause = error
    }
    if (left <= 0) throw new Error(`${what}: locked for too long`, { cause })
    const rest = numberBetween(systemRandom, { least: pause / 2, most: pause })
    await systemClock.sleep(rest)
    left -= rest
  }
}

const isLocked = (error: unknown): boolean =>
  error instanceof Error && 'code' in error && LOCKED.some((code) => code === error.code)

/** Those that this database does not have, in their order. It may have those of a later release, which come after all
 *  known ones: without them, no process of this release could start beside the next one, or after it was taken back.
 */
async function readPending(
  connection: Kysely<Tables>,
  migrations: Readonly<Record<string, Migration>>,
): Promise<readonly (readonly [string, Migration])[]> {
  const { rows: tables } = await sql<{ isThere: boolean }>`
    select to_regclass('kysely_migration') is not null as "isThere"`.execute(connection)
  if (tables[0]?.isThere !== true)
    await sql`create table kysely_migration
      (name varchar(255) not null primary key, timestamp varchar(255) not null)`.execute(connection)
  const { rows } = await sql<{ name: string; needs: string | null }>`
    select name, to_jsonb(kysely_migration)->>'needs' as needs from kysely_migration order by name`.execute(connection)
  refuseOlderProcess(rows, migrations)
  const known = Object.keys(migrations).toSorted()
  const done = new Set(rows.map(({ name }) => name))
  const strange = [...done].find((name) => !(name in migrations) && name < (known.at(-1) ?? ''))
  if (strange !== undefined) throw new Error(`the database has migration ${strange}, which this release does not know`)
  const last = known.findLast((name) => done.has(name)) ?? ''
  const late = known.find((name) => !done.has(name) && name < last && migrations[name]?.finishes === undefined)
  if (late !== undefined) throw new Error(`the database has migration ${last}, but not ${late}, which comes before it`)
  return Object.entries(migrations)
    .filter(([name]) => !done.has(name))
    .toSorted(([one], [other]) => (one < other ? -1 : 1))
}

/** Throws SchemaIsNewer when a migration that was done needs one that this release does not know. */
function refuseOlderProcess(
  done: readonly { readonly name: string; readonly needs: string | null }[],
  migrations: Readonly<Record<string, Migration>>,
): void {
  const newer = done.find(({ needs }) => needs !== null && !(needs in migrations))
  if (newer === undefined) return
  throw new SchemaIsNewer(
    `The upgrade of this database was finished by a later release (migration ${newer.name}). This release lacks ` +
      `migration ${newer.needs} and cannot use it. Start the later release.`,
  )
}

async function run(
  connection: Kysely<Tables>,
  { name, migration, lockMilliseconds }: { name: string; migration: Migration; lockMilliseconds: number },
): Promise<void> {
  const at = systemClock.now().toISOString()
  const note = (db: Kysely<Tables>) =>
    migration.finishes === undefined
      ? sql`insert into kysely_migration (name, timestamp) values (${name}, ${at})`.execute(db)
      : sql`insert into kysely_migration (name, timestamp, needs)
          values (${name}, ${at}, ${migration.finishes})`.execute(db)
  const untyped = (db: Kysely<Tables>) => db as unknown as Kysely<unknown> // a migration knows no later tables
  if (migration.isResumable === true) {
    await migration.up(untyped(connection))
    await note(connection)
    return
  }
  await connection.transaction().execute(async (tx) => {
    await sql`select set_config('lock_timeout', ${`${lockMilliseconds}ms`}, true),
      set_config('statement_timeout', ${`${STATEMENT_MILLISECONDS_MAXIMUM}ms`}, true)`.execute(tx)
    await migration.up(untyped(tx))
    await note(tx)
  })
}
