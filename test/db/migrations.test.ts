import { readdir } from 'node:fs/promises'
import { type Kysely, sql } from 'kysely'
import { expect, test } from 'vitest'
import { createIndexes } from '../../db/kit/create-indexes.ts'
import { readMigrations } from '../../db/kit/migrate.ts'
import { faultsOf, statementsOf } from './migration-faults.ts'

/** Two of one number, or one before what databases have run already, would stop every upgrade. */
test('migrations are numbered without a gap, and each number is there once', async () => {
  const files = (await readdir('db/migrations')).sort()
  expect(files.filter((file) => !/^\d{4}(-[a-z]+)+\.ts$/.test(file))).toEqual([])
  expect(files.map((file) => Number(file.slice(0, 4)))).toEqual(files.map((_file, index) => index + 1))
})

/** They are from before the rules. None is added. */
const LAST_BEFORE_THE_RULES = 57
/** Keys are kept for a day: their indexes are soon built. */
const EXEMPT = '0064-keys-of-operators'

test('processes of two releases go on while a migration runs', async () => {
  const migrations = Object.entries(await readMigrations())
  const ruled = migrations.filter(([name]) => Number(name.slice(0, 4)) > LAST_BEFORE_THE_RULES && name !== EXEMPT)
  expect(ruled.length).toBeGreaterThan(4)
  for (const [name, migration] of ruled) {
    expect(await statementsOf(migration), name).not.toEqual([])
    expect(await faultsOf(migration), name).toEqual([])
  }
})

test('what finishes an upgrade names the migration before it that replaced what it takes away', async () => {
  const migrations = await readMigrations()
  for (const [name, { finishes }] of Object.entries(migrations))
    if (finishes !== undefined) expect(finishes in migrations && finishes < name, name).toBe(true)
})

const raw =
  (...statements: readonly string[]) =>
  async (db: Kysely<unknown>) => {
    for (const statement of statements) await sql.raw(statement).execute(db)
  }

test.each([
  ['builds an index while nobody can write', 'create index a on account (name)'],
  ['builds an index while nobody can write', 'create unique index a on account (name)'],
  ['is concurrent inside of a transaction', 'create index concurrently if not exists a on account (name)'],
  ['cannot be run again', 'create index concurrently a on account (name)'],
  ['sets its own limits', 'set lock_timeout = 0'],
  ['takes away what', 'alter table account drop column name'],
  ['takes away what', 'alter table account rename column name to title'],
  ['takes away what', 'alter table account alter column name set not null'],
  ['takes away what', 'alter table account alter column name drop default'],
  ['takes away what', 'alter table account alter column name type bigint'],
  ['takes away what', 'drop table account'],
  ['adds a column that', 'alter table account add column one text default 1, add column other text not null'],
  ['writes every row', 'alter table account add column one uuid default gen_random_uuid()'],
  ['reads every row', "alter table account add constraint named check (name <> '')"],
  ['reads every row', 'alter table account add column one uuid references app_user (id)'],
  ['builds an index inside', 'alter table account add column one uuid unique'],
  ['locks a table', 'lock table account'],
  ['writes the table anew', 'truncate account'],
])('%s: %s', async (fault, statement) => {
  expect(await faultsOf({ up: raw(statement) })).toContainEqual(expect.stringContaining(fault))
})

test('a migration that finishes an upgrade may take away what was replaced', async () => {
  const drop = raw('alter table account drop column name')
  expect(await faultsOf({ finishes: '0001-foundation', up: drop })).toEqual([])
  expect(await faultsOf({ finishes: '0001-foundation', up: raw('lock table account') })).toHaveLength(1)
})

test('what changes a table and its rows is two migrations', async () => {
  const [change, rows] = ['alter table account add column one text', "update account set one = 'x'"]
  expect(await faultsOf({ up: raw(change, rows) })).toHaveLength(1)
  expect(await faultsOf({ up: raw(change) })).toEqual([])
  expect(await faultsOf({ isResumable: true, up: raw(rows) })).toEqual([])
  expect(await faultsOf({ isResumable: true, up: raw(change) })).toHaveLength(1)
})

test('tables of the same migration, and indexes that are built beside others, are no fault', async () => {
  expect(await faultsOf({ up: raw('create table one (a text not null)', 'create index two on one (a)') })).toEqual([])
  const up = (db: Kysely<unknown>) => createIndexes(db, { one: 'account (name)' })
  expect(await faultsOf({ isResumable: true, up })).toEqual([])
  expect(await faultsOf({ up })).not.toEqual([])
})
