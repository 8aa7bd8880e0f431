/** A real PostgreSQL for tests and benchmarks. Of tests nothing is durable; the files of the database tier share one
 *  server, which the tier starts; others start theirs. Every `useDatabase` is a separate database with the newest
 *  schema. */
import { appendFileSync } from 'node:fs'
import { mkdtemp, open, readFile, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setImmediate } from 'node:timers/promises'
import pg from 'pg'
import { afterAll, beforeAll, inject } from 'vitest'
import type { TestProject } from 'vitest/node'
import { noteLook } from '../db/look/index.ts'
import { migrate } from '../db/kit/migrate.ts'
import { type Database, openDatabase } from '../db/kit/open.ts'
import { startPostgres as startEmbedded } from '../embedded/postgres.ts'
import { systemClock } from '../kit/sys/clock.ts'
import { silentLog } from '../kit/sys/log.ts'
import { environment } from '../kit/sys/process.ts'
import { newUuid, systemRandom } from '../kit/sys/random.ts'

const CONNECTIONS_MAXIMUM = 30
/** A hundred transactions at once wait for each other on a busy machine. */
const CONNECT_MILLISECONDS_MAXIMUM = 120_000
const BREAK_MILLISECONDS_MAXIMUM = 10_000
const TEMPLATE = 'template_migrated'
const STATEMENTS_VARIABLE = 'SVCCLOUD_TEST_STATEMENTS'

export interface TestServer {
  readonly url: string
  /** A new database with the newest schema. */
  createDatabase(): Promise<TestDatabase>
  stop(): Promise<void>
}

export interface TestDatabase {
  readonly url: string
  readonly db: Database
  /** Ends every connection to it, as a restart of PostgreSQL does. */
  breakConnections(): Promise<void>
  drop(): Promise<void>
}

declare module 'vitest' {
  export interface ProvidedContext {
    /** Of the server that the files of the tier share. */
    readonly postgresUrl?: string
  }
}

const databaseAt = (serverUrl: string, name: string): string =>
  Object.assign(new URL(serverUrl), { pathname: `/${name}` }).href

/** Appends each of its statements, as JSON, to the file that the variable names: `test/upgrade/record.ts`. */
function recorded(db: Database): Database {
  const file = environment()[STATEMENTS_VARIABLE]
  if (file === undefined) return db
  const seen = new Set<string>()
  return db.withPlugin({
    transformQuery({ node }) {
      const { sql } = db.getExecutor().compileQuery(node, { queryId: 'recorded' })
      if (!seen.has(sql)) appendFileSync(file, `${JSON.stringify(sql)}\n`)
      seen.add(sql)
      return node
    },
    transformResult: async ({ result }) => result,
  })
}

async function run(serverUrl: string, ...statements: readonly string[]): Promise<void> {
  const client = new pg.Client({ connectionString: databaseAt(serverUrl, 'postgres') })
  await client.connect()
  try {
    for (const statement of statements) await client.query(statement)
  } finally {
    await client.end()
  }
}

async function createTemplate(serverUrl: string): Promise<void> {
  await run(serverUrl, `create database ${TEMPLATE}`)
  const template = openDatabase({ url: databaseAt(serverUrl, TEMPLATE), connectionsMaximum: 1 })
  await migrate(template)
  await template.destroy()
}

/** A new database from the template of a server that runs. */
async function createDatabase(serverUrl: string): Promise<TestDatabase> {
  const name = `test_${newUuid(systemRandom).replaceAll('-', '')}`
  // Files are copied in a third of the time that it takes to write all pages into the log.
  await run(serverUrl, `create database ${name} template ${TEMPLATE} strategy file_copy`)
  const url = databaseAt(serverUrl, name)
  const db = openDatabase({
    url,
    connectionsMaximum: CONNECTIONS_MAXIMUM,
    connectMillisecondsMaximum: CONNECT_MILLISECONDS_MAXIMUM,
  })
  await noteLook(db, [], systemClock.now())
  return {
    url,
    db: recorded(db),
    async breakConnections() {
      const ended = `pg_terminate_backend(pid, ${BREAK_MILLISECONDS_MAXIMUM})`
      await run(serverUrl, `select ${ended} from pg_stat_activity where datname = '${name}'`)
      await setImmediate() // the pool reads that they ended before it gives one away
    },
    async drop() {
      await db.destroy()
      await run(serverUrl, `drop database ${name} with (force)`)
    },
  }
}

export async function startPostgres({ isDurable = false } = {}): Promise<TestServer> {
  const folder = await mkdtemp(join(tmpdir(), 'svccloud-postgres-'))
  const log = await open(join(folder, 'log'), 'a+')
  const server = await startEmbedded({
    folder,
    port: 0,
    isDurable,
    hasSocket: true,
    output: log.fd,
    clock: systemClock,
    random: systemRandom,
    log: silentLog,
  }).catch(async (error: unknown) => {
    throw new Error(`PostgreSQL did not start: ${await readFile(join(folder, 'log'), 'utf8')}`, { cause: error })
  })
  const url = `${server.url}?${new URLSearchParams({ host: join(folder, 'data') })}`
  await createTemplate(url)
  const created: TestDatabase[] = []
  return {
    url,
    async createDatabase() {
      const database = await createDatabase(url)
      created.push(database)
      return database
    },
    async stop() {
      for (const { db } of created) await db.destroy()
      await server.stop()
      await log.close()
      await rm(folder, { recursive: true, force: true })
    },
  }
}

/** Vitest calls it before the first file of the tier, and what it answers after the last. */
export async function setup(project: TestProject): Promise<() => Promise<void>> {
  const server = await startPostgres()
  project.provide('postgresUrl', server.url)
  return () => server.stop()
}

/** A fresh database for the tests of the enclosing `describe` or file; read `db` and `url` inside tests and hooks
 *  only. */
export function useDatabase(): { readonly db: Database; readonly url: string; breakConnections(): Promise<void> } {
  let database: TestDatabase | undefined
  let own: TestServer | undefined
  beforeAll(async () => {
    const url = inject('postgresUrl') ?? (own = await startPostgres()).url
    database = await createDatabase(url)
  })
  afterAll(async () => {
    await database?.drop()
    await own?.stop()
  })
  const opened = (): TestDatabase => {
    if (database === undefined) throw new Error('the database is there while tests and hooks run, not before')
    return database
  }
  return {
    get db() {
      return opened().db
    },
    get url() {
      return opened().url
    },
    breakConnections: () => opened().breakConnections(),
  }
}
