/** Processes of the release before go on with the schema of this one, as long as an upgrade takes. There is no release
 *  yet: until then it is the state of the last migration below, whose statements `record.ts` has written down. */
import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { sql } from 'kysely'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { migrate, readMigrations } from '../../db/kit/migrate.ts'
import { type Database, openDatabase } from '../../db/kit/open.ts'
import { newUuid, systemRandom } from '../../kit/sys/random.ts'
import { useDatabase } from '../database.ts'

const LAST_BEFORE = '0063-keys-have-generations'
const database = useDatabase()
const name = `before_${newUuid(systemRandom).replaceAll('-', '')}`
let db: Database

beforeAll(async () => {
  await sql.raw(`create database ${name}`).execute(database.db)
  db = openDatabase({ url: Object.assign(new URL(database.url), { pathname: `/${name}` }).href, connectionsMaximum: 2 })
})
afterAll(async () => {
  await db?.destroy()
  await sql.raw(`drop database if exists ${name} with (force)`).execute(database.db)
})

const migrationsBefore = async () =>
  Object.fromEntries(Object.entries(await readMigrations()).filter(([each]) => each <= LAST_BEFORE))

/** Those that PostgreSQL cannot plan, with the reason. */
async function misunderstood(statements: readonly string[]): Promise<readonly string[]> {
  const failures: string[] = []
  for (const statement of statements)
    await sql
      .raw(`explain (generic_plan) ${statement}`)
      .execute(db)
      .catch((error: unknown) => failures.push(`${String(error)}: ${statement}`))
  return failures
}

interface Column {
  readonly column: string
  /** Whether a row can leave it out. */
  readonly isOptional: boolean
}
const columns = async () =>
  (
    await sql<Column>`select table_name || '.' || column_name as column,
        is_nullable = 'YES' or column_default is not null or is_identity = 'YES' or is_generated = 'ALWAYS'
          as "isOptional"
      from information_schema.columns where table_schema = 'public'`.execute(db)
  ).rows

test('what the release before asks is understood, and what it writes has what a row needs', async () => {
  const text = await readFile(join(import.meta.dirname, 'statements.jsonl'), 'utf8')
  const statements = text
    .trim()
    .split('\n')
    .map((line) => JSON.parse(line) as string)
  expect(statements.length).toBeGreaterThan(300)
  await migrate(db, { migrations: await migrationsBefore() })
  expect(await misunderstood(statements)).toEqual([])
  const before = await columns()

  await migrate(db)
  expect(await misunderstood(statements)).toEqual([])
  const after = await columns()
  const [known, left] = [before, after].map((all) => new Set(all.map(({ column }) => column)))
  expect([...known!].filter((column) => !left!.has(column))).toEqual([])
  const tables = new Set([...known!].map((column) => column.split('.')[0]))
  const needed = after.filter(
    ({ column, isOptional }) => !isOptional && !known!.has(column) && tables.has(column.split('.')[0]),
  )
  expect(needed).toEqual([])
  const optional = new Set(before.filter(({ isOptional }) => isOptional).map(({ column }) => column))
  expect(after.filter(({ column, isOptional }) => !isOptional && optional.has(column))).toEqual([])

  // It starts, too.
  await migrate(db, { migrations: await migrationsBefore() })
})
