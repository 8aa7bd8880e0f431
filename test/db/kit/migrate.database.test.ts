import { type Kysely, sql } from 'kysely'
import { expect, onTestFinished, test } from 'vitest'
import { begin } from '../../../db/kit/begin.ts'
import { createIndexes } from '../../../db/kit/create-indexes.ts'
import { migrate, type Migration, readMigrations, SchemaIsNewer } from '../../../db/kit/migrate.ts'
import { openDatabase } from '../../../db/kit/open.ts'
import { useDatabase } from '../../database.ts'
import { eventually } from '../../eventually.ts'
import { lockWaits } from '../../lock-waits.ts'

const database = useDatabase()

const withNext = async (name: string, next: Migration) => ({ ...(await readMigrations()), [name]: next })
const indexes = (db: Kysely<unknown>) => createIndexes(db, { things_name: 'things (name)' })
const isNoted = async (name: string): Promise<boolean> => {
  const { rows } = await sql`select from kysely_migration where name = ${name}`.execute(database.db)
  return rows.length === 1
}
const isValid = async (index: string): Promise<boolean | undefined> => {
  const { rows } = await sql<{ indisvalid: boolean }>`
    select indisvalid from pg_index where indexrelid = to_regclass(${index})`.execute(database.db)
  return rows[0]?.indisvalid
}
const recreate = async () => {
  await sql`delete from kysely_migration where name > '7'`.execute(database.db)
  await sql`drop table if exists things`.execute(database.db)
  await sql`create table things (name text)`.execute(database.db)
}
const write = (name: string) => sql`insert into things values (${name})`.execute(database.db)

test('others write while an index is built, and another process waits until it is there', async () => {
  await recreate()
  const migrations = await withNext('8000-one', { isResumable: true, up: indexes })
  const open = await begin(database.db)
  await sql`insert into things values ('open')`.execute(open.tx)
  const building = Promise.all([migrate(database.db, { migrations }), migrate(database.db, { migrations })])
  await eventually('the index to wait for the transaction', async () => (await lockWaits(database.db)) > 0)
  await write('meanwhile')
  expect(await isNoted('8000-one')).toBe(false)
  await open.commit()
  await building
  expect(await isValid('things_name')).toBe(true)
  expect(await isNoted('8000-one')).toBe(true)
})

test('an index that a kill has left unfinished is built anew', async () => {
  await recreate()
  const open = await begin(database.db)
  await sql`insert into things values ('open')`.execute(open.tx)
  const killed = openDatabase({ url: database.url, connectionsMaximum: 1 })
  onTestFinished(() => killed.destroy())
  const migrations = await withNext('8001-two', { isResumable: true, up: indexes })
  const failed = migrate(killed, { migrations }).then(
    () => 'done',
    () => 'killed',
  )
  await eventually('the index to wait for the transaction', async () => (await lockWaits(database.db)) > 0)
  await sql`select pg_terminate_backend(pid) from pg_stat_activity
    where datname = current_database() and query like 'create index%'`.execute(database.db)
  expect(await failed).toBe('killed')
  await open.commit()
  expect(await isValid('things_name')).toBe(false)
  expect(await isNoted('8001-two')).toBe(false)
  await migrate(database.db, { migrations })
  expect(await isValid('things_name')).toBe(true)
  expect(await isNoted('8001-two')).toBe(true)
})

test('a process of an earlier release that waits inside of the statement has its turn before the index', async () => {
  await recreate()
  const earlier = openDatabase({ url: database.url, connectionsMaximum: 1 })
  onTestFinished(() => earlier.destroy())
  let turn: Promise<unknown> | undefined
  const hasWaited = async () => {
    // Its own look for a deadlock, after a second, has found none: the index loses.
    const { rows } = await sql`select from pg_stat_activity where wait_event = 'advisory'
      and datname = current_database() and clock_timestamp() - query_start > interval '2 seconds'`.execute(database.db)
    return rows.length > 0
  }
  const up = async (db: Kysely<unknown>) => {
    if (turn === undefined) {
      turn = earlier.connection().execute(async (connection) => {
        await sql`select pg_advisory_lock(7238501)`.execute(connection)
        await sql`select pg_advisory_unlock(7238501)`.execute(connection)
      })
      await eventually('the earlier process to wait', hasWaited)
    }
    await indexes(db)
  }
  await migrate(database.db, { migrations: await withNext('8007-eight', { isResumable: true, up }) })
  await turn
  expect(await isValid('things_name')).toBe(true)
  expect(await isNoted('8007-eight')).toBe(true)
})

test('a resumable step takes as long as it takes, whatever the limit of statements is', async () => {
  await recreate()
  const url = new URL(database.url)
  url.searchParams.set('options', '-c statement_timeout=200')
  const limited = openDatabase({ url: url.href, connectionsMaximum: 1 })
  onTestFinished(() => limited.destroy())
  const limit = async () =>
    (
      await sql<{ limit: string }>`select
    current_setting('statement_timeout') as limit`.execute(limited)
    ).rows
  expect(await limit()).toEqual([{ limit: '200ms' }])
  const up = async (db: Kysely<unknown>) => void (await sql`select pg_sleep(1)`.execute(db))
  await migrate(limited, { migrations: await withNext('8008-nine', { isResumable: true, up }) })
  expect(await isNoted('8008-nine')).toBe(true)
  expect(await limit(), 'of everybody who has the connection next').toEqual([{ limit: '200ms' }])
})

test('a change of a table lets others pass while it cannot have its lock, and is tried again', async () => {
  await recreate()
  let attempts = 0
  const up = async (db: Kysely<unknown>) => {
    attempts += 1
    await sql`alter table things add column more text`.execute(db)
  }
  const migrations = await withNext('8002-three', { up })
  const open = await begin(database.db)
  await sql`select from things`.execute(open.tx)
  const migrating = migrate(database.db, { migrations, lockMilliseconds: 50 })
  await eventually('a second attempt', () => attempts > 1)
  await write('meanwhile') // behind the change, if that waited for ever
  await open.commit()
  await migrating
  expect(await isNoted('8002-three')).toBe(true)
})

test('what is locked for too long is refused, and changes nothing', async () => {
  await recreate()
  const up = async (db: Kysely<unknown>) => {
    await sql`create table more (name text)`.execute(db)
    await sql`alter table things add column more text`.execute(db)
  }
  const migrations = await withNext('8003-four', { up })
  const open = await begin(database.db)
  await sql`select from things`.execute(open.tx)
  const limits = { migrations, lockMilliseconds: 20, patienceMilliseconds: 1 }
  await expect(migrate(database.db, limits)).rejects.toThrow('8003-four')
  await open.rollback()
  const { rows } = await sql`select to_regclass('more')::text as more`.execute(database.db)
  expect(rows).toEqual([{ more: null }])
  await migrate(database.db, limits)
})

test('each migration is a transaction: one that fails leaves those before it', async () => {
  await recreate()
  const migrations = {
    ...(await withNext('8004-five', { up: async (db) => void (await sql`drop table things`.execute(db)) })),
    '8005-six': { up: async (db: Kysely<unknown>) => void (await sql`drop table things`.execute(db)) },
  }
  await expect(migrate(database.db, { migrations })).rejects.toThrow('things')
  expect(await isNoted('8004-five')).toBe(true)
  expect(await isNoted('8005-six')).toBe(false)
})

test('a step that comes before what was done is refused', async () => {
  await recreate()
  await migrate(database.db, { migrations: await withNext('8006-seven', { up: async () => {} }) })
  const migrations = { ...(await withNext('7999-late', { up: async () => {} })), '8006-seven': { up: async () => {} } }
  await expect(migrate(database.db, { migrations })).rejects.toThrow('7999-late')
})

test('what takes away runs when the upgrade is finished, and earlier releases do not start afterwards', async () => {
  await recreate()
  const replaced: Migration = {
    up: async (db) => void (await sql`alter table things add column label text`.execute(db)),
  }
  const drop: Migration = {
    finishes: '8007-labels',
    up: async (db) => void (await sql`alter table things drop column name`.execute(db)),
  }
  const earlier = await readMigrations()
  const migrations = { ...earlier, '8007-labels': replaced, '8008-names': drop, '8009-next': { up: async () => {} } }
  await migrate(database.db, { migrations })
  expect([await isNoted('8008-names'), await isNoted('8009-next')]).toEqual([false, true])
  // both releases start until then, and again
  await migrate(database.db, { migrations: earlier })
  await migrate(database.db, { migrations })

  await migrate(database.db, { migrations, isFinishing: true })
  expect(await isNoted('8008-names')).toBe(true)
  await expect(migrate(database.db, { migrations: earlier })).rejects.toThrow(SchemaIsNewer)
  await migrate(database.db, { migrations })
  const between = { ...earlier, '8007-labels': replaced }
  await migrate(database.db, { migrations: between })
})
