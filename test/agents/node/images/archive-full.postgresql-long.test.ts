/** A database whose archive is full while it has older backups: by the real PostgreSQL and pgBackRest, with a real
 *  store that holds its quota. */
import { expect, test } from 'vitest'
import { until } from '../../../eventually.ts'
import { archiveIn, commit, reportWhen, rowsOf, useArchive, writeNoise } from './archived-database.ts'

const { store, archived, restored } = useArchive()

const HALF_MEBIBYTE = 512 * 1024
/** Of noise, between the two backups: several segments. */
const WRITES = 96

test('a full archive drops its oldest backup early, and continues', async () => {
  const repository = await store().newRepository()
  const machine = await archived(repository)
  await machine.query('create table sale (row int)')
  await commit(machine, 1)
  const client = await machine.connect()
  for (let count = 0; count < WRITES; count++) await writeNoise(client)
  const minuteOf = (text: string | undefined) => text?.slice(0, 16) ?? ''
  const { backups } = await reportWhen(machine, 'no pause', ({ failure }) => failure === '')
  const slot = await until(
    'the next minute',
    () => new Date().toISOString(),
    (now) => minuteOf(now) > minuteOf(backups[0]?.startedAt),
  )
  const fullBackupAt = { hour: Number(slot.slice(11, 13)), minute: Number(slot.slice(14, 16)) }
  await machine.tell({ archive: { ...archiveIn(repository), fullBackupAt } })
  const [, second] = (await reportWhen(machine, 'another backup', (report) => report.backups.length === 2)).backups
  // Less than it holds: not even the list of what is left of it has room.
  await store().leaveRoom(repository, -HALF_MEBIBYTE)
  const late = await commit(machine, 2)
  const after = await reportWhen(machine, 'what is written after it', (report) => (report.latestAt ?? '') > late)
  expect(after.backups.map(({ label }) => label)).toEqual([second?.label])
  expect((after.earliestAt ?? '') > (second?.completedAt ?? '')).toBe(true)
  expect(after.shortenedAt).not.toBeNull()
  expect([after.pause, after.gaps]).toEqual([undefined, []])
  expect(await rowsOf(await restored(repository, null))).toEqual([1, 2])
})
