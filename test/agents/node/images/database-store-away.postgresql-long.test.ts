/** The archive of a database while its real store is away. */
import { rm } from 'node:fs/promises'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { until } from '../../../eventually.ts'
import { commit, reportWhen, rowsOf, useArchive } from './archived-database.ts'

const { store, archived, restored } = useArchive()

test('an unavailable store is the last attempt’s failure, writes continue, and none of them is lost', async () => {
  const repository = await store().newRepository()
  const origin = await archived(repository)
  await origin.query('create table sale (row int)')
  await store().stop()
  await reportWhen(origin, 'the failure', ({ failure }) => failure !== '')
  const away = await commit(origin, 1)
  // What was archived just before the store went may be reported now.
  const { latestAt: reached } = await reportWhen(origin, 'what is archived', () => true)
  expect(reached !== null && reached < away).toBe(true)
  await store().start()
  const { latestAt, gaps } = await reportWhen(
    origin,
    'what was written meanwhile',
    (report) => (report.latestAt ?? '') > away && report.failure === '',
  )
  expect(gaps).toEqual([])
  expect(await rowsOf(await restored(repository, latestAt))).toEqual([1])
})

test('a machine that restarts while the store is unavailable still reports what can be restored', async () => {
  const repository = await store().newRepository()
  const machine = await archived(repository)
  const known = await reportWhen(machine, 'a backup', ({ backups }) => backups.some((each) => each.isRestorable))
  await machine.ask('stop')
  await store().stop()
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
  await store().start()
  await reportWhen(machine, 'progress', ({ latestAt }) => (latestAt ?? '') > (after.latestAt ?? ''))
})
