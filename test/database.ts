/** A real PostgreSQL for tests: one server for the test file, started on first use in a temporary folder, and a fresh
 *  migrated database for each `useDatabase`. Nothing of it is durable, so it starts in about a second. */
import { mkdtemp, open, readFile, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import pg from 'pg'
import { afterAll, beforeAll } from 'vitest'
import { type Database, migrate, openDatabase } from '../db/open.ts'
import { startPostgres as startEmbedded } from '../embedded/postgres.ts'
import { systemClock } from '../kit/sys/clock.ts'
import { silentLog } from '../kit/sys/log.ts'
import { systemRandom } from '../kit/sys/random.ts'

const CONNECTIONS_MAXIMUM = 30
const TEMPLATE = 'template_migrated'

export interface TestServer {
  /** A new database with the newest schema. */
  createDatabase(): Promise<{ readonly url: string; readonly db: Database }>
  /** Ends every connection to the database of the URL, as a restart of PostgreSQL does. */
  breakConnections(url: string): Promise<void>
  stop(): Promise<void>
}

export async function startPostgres(): Promise<TestServer> {
  const folder = await mkdtemp(join(tmpdir(), 'svccloud-postgres-'))
  const log = await open(join(folder, 'log'), 'a+')
  const server = await startEmbedded({ folder, port: 0, isDurable: false, output: log.fd, clock: systemClock, random: systemRandom, log: silentLog })
    .catch(async (error: unknown) => { throw new Error(`PostgreSQL did not start: ${await readFile(join(folder, 'log'), 'utf8')}`, { cause: error }) })
  const urlOf = (name: string): string => Object.assign(new URL(server.url), { pathname: `/${name}` }).href
  const run = async (statement: string): Promise<void> => {
    const client = new pg.Client({ connectionString: urlOf('postgres') })
    await client.connect()
    await client.query(statement).finally(() => client.end())
  }

  await run(`create database ${TEMPLATE}`)
  const template = openDatabase({ url: urlOf(TEMPLATE), connectionsMaximum: 1 })
  await migrate(template)
  await template.destroy()

  const opened: Database[] = []
  return {
    async createDatabase() {
      const name = `test_${opened.length}`
      await run(`create database ${name} template ${TEMPLATE}`)
      const db = openDatabase({ url: urlOf(name), connectionsMaximum: CONNECTIONS_MAXIMUM })
      opened.push(db)
      return { url: urlOf(name), db }
    },
    breakConnections: (url) => run(`select pg_terminate_backend(pid) from pg_stat_activity where datname = '${new URL(url).pathname.slice(1)}'`),
    async stop() {
      for (const db of opened) await db.destroy()
      await server.stop()
      await log.close()
      await rm(folder, { recursive: true, force: true })
    },
  }
}

/** A fresh database for the tests of the enclosing `describe` or file; read `db` and `url` inside tests and hooks only. */
export function useDatabase(): { readonly db: Database; readonly url: string; breakConnections(): Promise<void> } {
  let server: TestServer | undefined
  let database: { readonly url: string; readonly db: Database } | undefined
  beforeAll(async () => {
    server = await startPostgres()
    database = await server.createDatabase()
  })
  afterAll(() => server?.stop())
  const opened = () => {
    if (database === undefined) throw new Error('the database is there while tests and hooks run, not before')
    return database
  }
  return {
    get db() { return opened().db },
    get url() { return opened().url },
    breakConnections: async () => server?.breakConnections(opened().url),
  }
}
