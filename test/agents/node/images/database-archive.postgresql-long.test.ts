/** The archive of a database, by the real PostgreSQL and pgBackRest into the real store: what can be restored, and that
 *  it holds what was committed at that moment. */
import { expect, test } from 'vitest'
import { until } from '../../../eventually.ts'
import { archiveIn, commit, reportWhen, rowsOf, useArchive } from './archived-database.ts'
import { passwordOf } from './database-machine.ts'

const { store, open, archived, restored } = useArchive()

test('a database is restored to any moment in its window, as it was then', async () => {
  const repository = await store().newRepository()
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
  const own = await store().newRepository()
  await third.tell({ archive: archiveIn(own) })
  await third.query('insert into sale values (30)')
  const { latestAt } = await reportWhen(third, 'a window of its own', (report) => report.latestAt !== null)
  await third.query('insert into sale values (31)')
  expect(await rowsOf(await restored(own, latestAt))).toEqual([1, 2, 3, 30])
  const latest = await restored(repository, null)
  await expect(rowsOf(latest), 'the end of the origin').rejects.toThrow('does not exist')
})

test('the last moment that it says is reached, whenever that is asked, also after a kill', async () => {
  const repository = await store().newRepository()
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
