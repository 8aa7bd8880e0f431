/** An upgrade is finished when no process of an earlier release runs. */
import { sql } from 'kysely'
import { beforeEach, expect, test } from 'vitest'
import { levelOf, type Migration, readMigrations } from '../../../db/kit/migrate.ts'
import { finishUpgrade, showProcess } from '../../../db/process/index.ts'
import { systemClock as clock } from '../../../kit/sys/clock.ts'
import { silentLog as log } from '../../../kit/sys/log.ts'
import { newUuid, systemRandom as random } from '../../../kit/sys/random.ts'
import { useDatabase } from '../../database.ts'
import { eventually } from '../../eventually.ts'

const database = useDatabase()
const listProcesses = () => database.db.selectFrom('process').select(['component', 'version', 'level']).execute()
const isThere = async (column: string): Promise<boolean> => {
  const { rows } = await sql`select from information_schema.columns
    where table_name = 'things' and column_name = ${column}`.execute(database.db)
  return rows.length === 1
}
const statement = (text: string) => ({ up: async (db) => void (await sql.raw(text).execute(db)) }) satisfies Migration
const next = async () => ({
  ...(await readMigrations()),
  '8001-labels': statement('alter table things add column label text'),
  '8002-names': { ...statement('alter table things drop column name'), finishes: '8001-labels' },
})
const seen = (level: string, secondsAgo: number) =>
  database.db
    .insertInto('process')
    .values({
      id: newUuid(random),
      component: 'apiserver',
      version: '0.1.0',
      level,
      seen_at: new Date(clock.now().getTime() - secondsAgo * 1_000),
    })
    .execute()

beforeEach(async () => {
  await database.db.deleteFrom('process').execute()
  await sql`delete from kysely_migration where name > '7'`.execute(database.db)
  await sql`drop table if exists things`.execute(database.db)
  await sql`create table things (name text)`.execute(database.db)
})

test('a process is shown with what it can work with, and no longer once it has stopped', async () => {
  await seen('0001-foundation', 2 * 86_400)
  const stop = new AbortController()
  const showing = showProcess(
    { component: 'apiserver', version: '1.2.3' },
    { db: database.db, clock, random, log },
    stop.signal,
  )
  const level = levelOf(await readMigrations())
  // the one that was seen two days ago is deleted
  await eventually('the process', async () => {
    const found = await listProcesses()
    return found.length === 1 && found[0]?.version === '1.2.3' ? found : undefined
  })
  expect(await listProcesses()).toEqual([{ component: 'apiserver', version: '1.2.3', level }])
  stop.abort()
  await showing
  expect(await listProcesses()).toEqual([])
})

test('nothing is taken away while a process of an earlier release runs', async () => {
  const migrations = await next()
  await seen(levelOf(await readMigrations()), 60)
  await seen('8002-names', 10)
  expect(await finishUpgrade({ db: database.db, clock }, { migrations })).toBe(
    'The upgrade cannot be finished while processes of an earlier release run: apiserver 0.1.0. Replace them first.',
  )
  expect([await isThere('name'), await isThere('label')]).toEqual([true, true])
})

test('it is finished when all processes know what replaced what is taken away', async () => {
  await seen('0001-foundation', 400)
  await seen('8001-labels', 10)
  expect(await finishUpgrade({ db: database.db, clock }, { migrations: await next() })).toBeUndefined()
  expect([await isThere('name'), await isThere('label')]).toEqual([false, true])
})

test('without anything to take away there is nothing to wait for', async () => {
  await seen('0001-foundation', 1)
  expect(await finishUpgrade({ db: database.db, clock })).toBeUndefined()
})
