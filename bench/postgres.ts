/** One PostgreSQL for all benchmarks of the process, whose commits wait for the disk, as in production. */
import { startPostgres, type TestDatabase, type TestServer } from '../test/database.ts'

let server: Promise<TestServer> | undefined

/** A new database with the newest schema; drop it after use. */
export async function createDatabase(): Promise<TestDatabase> {
  server ??= startPostgres({ isDurable: true })
  return (await server).createDatabase()
}

/** Stops what `createDatabase` started. */
export async function stopPostgres(): Promise<void> {
  const running = await server
  server = undefined
  await running?.stop()
}
