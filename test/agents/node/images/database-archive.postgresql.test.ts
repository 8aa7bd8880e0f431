/** The archive of a database, by the real PostgreSQL and pgBackRest into the real store: what can be restored, and that
 *  it holds what was committed at that moment. */
import { rm } from 'node:fs/promises'
import { join } from 'node:path'
import { afterAll, afterEach, beforeAll, expect, test } from 'vitest'
import type { ArchiveReport, MachineDocument, Repository } from '../../../../resources/managed-machine/index.ts'
import { until } from '../../../eventually.ts'
import { type ArchiveStore, openArchiveStore } from './archive-store.ts'
import { type DatabaseMachine, openDatabaseMachine, passwordChange, passwordOf } from './database-machine.ts'

type Archive = NonNullable<NonNullable<MachineDocument['postgresql']>['archive']>

const PATIENCE_MILLISECONDS = 180_000
let store: ArchiveStore
const machines: DatabaseMachine[] = []

beforeAll(async () => {
  store = await openArchiveStore()
})
afterEach(async () => {
  for (const machine of machines.splice(0)) await machine.close()
}, PATIENCE_MILLISECONDS)
afterAll(() => store.close())

async function open(): Promise<DatabaseMachine> {
  const machine = await openDatabaseMachine({ archive: store.address })
  machines.push(machine)
  return machine
}

/** In twelve hours, so that no full backup comes by itself. */
const archiveIn = (repository: Repository): Archive => ({
  repository,
  retentionDays: 7,
  fullBackupAt: { hour: (new Date().getUTCHours() + 12) % 24, minute: 0 },
})

const reportWhen = async (
  machine: DatabaseMachine,
  what: string,
  isMet: (report: ArchiveReport) => boolean,
): Promise<ArchiveReport> => {
  const { report } = await until(
    what,
    () => machine.look(),
    ({ report: { postgresql } }) => postgresql?.archive !== undefined && isMet(postgresql.archive),
    PATIENCE_MILLISECONDS,
  )
  return report.postgresql?.archive ?? expect.fail('there is no report')
}

/** A database with an archive that it can be restored from. */
async function archived(repository: Repository): Promise<DatabaseMachine> {
  const machine = await open()
  await machine.tell({ archive: archiveIn(repository) })
  await reportWhen(machine, 'a window', ({ latestAt }) => latestAt !== null)
  return machine
}

/** Commits the row; a moment after that and before the next one. */
async function commit(machine: DatabaseMachine, row: number): Promise<string> {
  await machine.query('insert into sale values ($1)', [row])
  const [answer] = await machine.query(`select to_char(clock_timestamp() at time zone 'UTC', $1) as at`, [
    'YYYY-MM-DD"T"HH24:MI:SS.US"Z"',
  ])
  return String(answer?.['at'])
}

const rowsOf = async (machine: DatabaseMachine): Promise<readonly unknown[]> =>
  (await machine.query('select row from sale order by row')).map(({ row }) => row)

/** A machine that is to begin as the origin was then. */
async function restored(origin: Repository, targetTime: string | null): Promise<DatabaseMachine> {
  const machine = await open()
  await machine.tell({ ...passwordChange(5), restore: { repository: origin, targetTime } })
  await until(
    'the restored database',
    () => machine.look(),
    ({ isHealthy }) => isHealthy,
    PATIENCE_MILLISECONDS,
  )
  return machine
}

test('a database is restored to any moment in its window, as it was then', async () => {
  const repository = await store.newRepository()
  const origin = await archived(repository)
  await origin.query('create table sale (row int)')
  const moments: string[] = []
  for (let row = 1; row <= 5; row++) moments.push(await commit(origin, row))
  await origin.query('drop table sale')
  const [dropped = ''] = moments.slice(-1)
  await reportWhen(origin, 'it to be archived', ({ latestAt }) => latestAt !== null && latestAt > dropped)
  const third = await restored(repository, moments[2] ?? null)
  expect(await rowsOf(third)).toEqual([1, 2, 3])
  await expect(third.connect({ password: passwordOf(1) }), 'the password of the origin').rejects.toThrow(
    'password authentication failed',
  )
  expect(await rowsOf(await restored(repository, dropped))).toEqual([1, 2, 3, 4, 5])
  // What goes on is its own: the origin's archive is as it was.
  const own = await store.newRepository()
  await third.tell({ archive: archiveIn(own) })
  await third.query('insert into sale values (30)')
  const { latestAt } = await reportWhen(third, 'a window of its own', (report) => report.latestAt !== null)
  await third.query('insert into sale values (31)')
  expect(await rowsOf(await restored(own, latestAt))).toEqual([1, 2, 3, 30])
  const latest = await restored(repository, null)
  await expect(rowsOf(latest), 'the end of the origin').rejects.toThrow('does not exist')
})

test('the last moment that it says is reached, whenever that is asked, also after a kill', async () => {
  const repository = await store.newRepository()
  const origin = await archived(repository)
  await origin.query('create table sale (row int)')
  const moments: string[] = []
  for (let row = 1; row <= 4; row++) {
    moments.push(await commit(origin, row))
    if (row === 2) {
      await origin.kill()
      await until(
        'the server',
        async () => {
          await origin.ask('start')
          return origin.query('select 1')
        },
        (rows) => rows.length === 1,
      )
    }
  }
  const { latestAt, earliestAt, gaps } = await reportWhen(
    origin,
    'rows',
    (report) => (report.latestAt ?? '') > (moments[0] ?? ''),
  )
  expect(gaps).toEqual([])
  expect(earliestAt !== null && latestAt !== null && earliestAt < latestAt).toBe(true)
  const expected = moments.flatMap((moment, index) => (moment <= (latestAt ?? '') ? [index + 1] : []))
  const found = await rowsOf(await restored(repository, latestAt))
  // A row may have been committed between its moment and the one before.
  expect(found.slice(0, expected.length)).toEqual(expected)
  expect(found.length - expected.length).toBeLessThanOrEqual(1)
  // Beyond the end is nothing that could be called the state of that moment.
  const beyond = await open()
  await beyond.tell({ restore: { repository, targetTime: new Date(Date.now() + 3_600_000).toISOString() } })
  const answer = await until(
    'a refusal',
    () => beyond.look(),
    ({ report }) => report.postgresql?.state === 'failed',
  )
  expect(answer).toMatchObject({ isHealthy: false, detail: expect.stringContaining('does not reach to that moment') })
})

test('a store that is away is the last attempt’s failure, writes go on, and nothing of them is lost', async () => {
  const repository = await store.newRepository()
  const origin = await archived(repository)
  await origin.query('create table sale (row int)')
  await store.stop()
  const { latestAt: before } = await reportWhen(origin, 'the failure', ({ failure }) => failure !== '')
  const away = await commit(origin, 1)
  expect((await reportWhen(origin, 'no progress', () => true)).latestAt).toBe(before)
  await store.start()
  const { latestAt, gaps } = await reportWhen(
    origin,
    'what was written meanwhile',
    (report) => (report.latestAt ?? '') > away && report.failure === '',
  )
  expect(gaps).toEqual([])
  expect(await rowsOf(await restored(repository, latestAt))).toEqual([1])
})

test('what can be restored is still known by a machine that begins anew while the store is away', async () => {
  const repository = await store.newRepository()
  const machine = await archived(repository)
  const known = await reportWhen(machine, 'a backup', ({ backups }) => backups.some((each) => each.isRestorable))
  await machine.ask('stop')
  await store.stop()
  await rm(join(machine.folder, 'run/svccloud/keeper.json')) // a boot has its folder anew
  await until(
    'the server',
    async () => {
      await machine.ask('start')
      return machine.query('select 1')
    },
    (rows) => rows.length === 1,
  )
  const after = await reportWhen(machine, 'the failure', ({ failure }) => failure !== '')
  expect(after).toMatchObject({ isOpen: true, earliestAt: known.earliestAt, backups: known.backups, gaps: [] })
  expect((after.latestAt ?? '') >= (known.latestAt ?? '')).toBe(true)
  await store.start()
  await reportWhen(machine, 'progress', ({ latestAt }) => (latestAt ?? '') > (after.latestAt ?? ''))
})
