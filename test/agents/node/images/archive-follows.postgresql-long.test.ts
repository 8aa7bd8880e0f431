/** A machine of a database, by the real programs, whose archive begins later, is another one, and is made anew. */
import { expect, test } from 'vitest'
import { until } from '../../../eventually.ts'
import { archiveIn, commit, reportWhen, rowsOf, useArchive } from './archived-database.ts'

const { store, open, restored } = useArchive()

test('a running machine follows an archive that starts later, is another one, or was recreated', async () => {
  const machine = await open()
  await machine.tell()
  await until(
    'the database',
    () => machine.look(),
    ({ isHealthy }) => isHealthy,
  )
  await machine.query('create table sale (row int)')
  const [first, second] = [await store().newRepository(), await store().newRepository()]
  const reaches = async (row: number) => {
    const moment = await commit(machine, row)
    await reportWhen(machine, `row ${row}`, ({ latestAt, failure }) => (latestAt ?? '') > moment && failure === '')
  }
  await machine.tell({ archive: archiveIn(first) })
  await reaches(1)
  await machine.tell({ archive: archiveIn(second) })
  await reaches(2)
  expect(await rowsOf(await restored(second, null))).toEqual([1, 2])
  await store().empty(second)
  await reportWhen(machine, 'the failure', ({ failure }) => failure !== '')
  await reaches(3)
  expect(await rowsOf(await restored(second, null))).toEqual([1, 2, 3])
})
