/** The database during dry runs. */
import { expect, test } from 'vitest'
import { deploymentSecret } from '../../../db/deployment/index.ts'
import { begin } from '../../../db/kit/begin.ts'
import { openGroupCommit } from '../../../db/kit/group-commit.ts'
import { systemClock } from '../../../kit/sys/clock.ts'
import { systemRandom } from '../../../kit/sys/random.ts'
import { inDryRun } from '../../../kit/sys/dry-run.ts'
import { useDatabase } from '../../database.ts'

const database = useDatabase()
const by = { clock: systemClock, random: systemRandom }
const names = async () =>
  (await database.db.selectFrom('deployment_secret').select('name').orderBy('name').execute()).map(({ name }) => name)
const dry = <Result>(work: () => Promise<Result>) => inDryRun({ startedAt: new Date() }, work)

test('what a transaction writes is there until its end, and then it is not', async () => {
  const { db } = database
  const seen = await dry(() =>
    db.transaction().execute(async (tx) => {
      await deploymentSecret(tx, 'tried', 8, by)
      return tx.selectFrom('deployment_secret').select('name').where('name', '=', 'tried').execute()
    }),
  )
  expect(seen).toEqual([{ name: 'tried' }])
  const { tx, commit } = await dry(() => begin(db))
  await dry(async () => {
    await deploymentSecret(tx, 'begun', 8, by)
    await commit()
  })
  expect(await names()).not.toContain('tried')
  expect(await names()).not.toContain('begun')
})

test('a single statement may read only', async () => {
  const { db } = database
  await deploymentSecret(db, 'kept', 8, by)
  await expect(dry(() => deploymentSecret(db, 'single', 8, by))).rejects.toThrow(/read-only transaction/)
  expect(await dry(names)).toEqual(['kept'])
  // The connection is as it was.
  await deploymentSecret(db, 'after', 8, by)
  expect(await names()).toEqual(['after', 'kept'])
})

test('nobody else is in the transaction of a dry run', async () => {
  const { db } = database
  const groups: (readonly string[])[] = []
  const save = openGroupCommit<string, void>(db, async (tx, items) => {
    groups.push(items)
    for (const item of items) await deploymentSecret(tx, item, 8, by)
    return items.map(() => undefined)
  })
  await Promise.all([save('key', 'one'), dry(() => save('key', 'dry')), save('key', 'two'), save('key', 'three')])
  expect(groups).toContainEqual(['dry'])
  expect(groups.flat().sort()).toEqual(['dry', 'one', 'three', 'two'])
  expect(await names()).toEqual(expect.arrayContaining(['one', 'three', 'two']))
  expect(await names()).not.toContain('dry')
})
