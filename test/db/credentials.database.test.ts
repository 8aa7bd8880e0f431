/** Whatever lets somebody in is in the list of decision 128, with what ends it. */
import { readFile } from 'node:fs/promises'
import { sql } from 'kysely'
import { expect, test } from 'vitest'
import { ROUTES } from '../../resources/index.ts'
import { useDatabase } from '../database.ts'

const database = useDatabase()
const LIST = 'docs/decisions/0128-what-lives-by-membership.md'
/** Names of columns and tables that hold a secret, or something that is somebody's. */
const TELLING = '(secret|token|hash|sealed|password|access_key|user_id|staff_id|holder|code|_key)'

/** What the first column of the section's tables names. */
async function listed(...sections: readonly string[]): Promise<readonly string[]> {
  const text = await readFile(LIST, 'utf8')
  const parts = text.split(/^## /m).filter((part) => sections.some((section) => part.startsWith(section)))
  expect(parts).toHaveLength(sections.length)
  const rows = parts.flatMap((part) => part.split('\n')).filter((line) => line.startsWith('| `'))
  return rows
    .flatMap((row) => [...(row.split('|')[1] ?? '').matchAll(/`(\w+)`/g)].map(([, name = '']) => name))
    .toSorted()
}

test('every table that holds a secret, or something of a person, says what ends it', async () => {
  const { rows } = await sql<{ name: string }>`select distinct table_name as name from information_schema.columns
    where table_schema = 'public' and (column_name ~ ${TELLING} or table_name ~ ${TELLING})`.execute(database.db)
  const others = ['kysely_migration', 'kysely_migration_lock']
  const tables = rows.map(({ name }) => name).filter((name) => !others.includes(name))
  expect(await listed('Of persons', 'Of accounts')).toEqual(tables.toSorted())
})

test('every route that shows a secret says how that ends', async () => {
  const showing = ROUTES.filter((route) => route.isCredentialRead || route.secretFields.length > 0)
  expect(showing.length).toBeGreaterThan(15)
  expect(await listed('Routes')).toEqual(showing.map(({ id }) => id).toSorted())
})
