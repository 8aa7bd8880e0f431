import { sql } from 'kysely'
import { expect, onTestFinished, test } from 'vitest'
import { begin } from '../../../db/kit/begin.ts'
import { databaseUnavailable } from '../../../db/kit/failures.ts'
import { migrate } from '../../../db/kit/migrate.ts'
import { openDatabase, type Queries } from '../../../db/kit/open.ts'
import { Unavailable } from '../../../domain/problem.ts'
import { createAccount } from '../../accounts.ts'
import { useDatabase } from '../../database.ts'

const database = useDatabase()

test(
  'a transaction that is idle for too long gives its rows to others,' + ' and is an outage for whoever began it',
  async () => {
    const cutOff = openDatabase({ url: database.url, connectionsMaximum: 1, idleTransactionMillisecondsMaximum: 200 })
    onTestFinished(() => cutOff.destroy())
    const accountId = await createAccount(database.db)
    const rename = (db: Queries, name: string) =>
      db.updateTable('account').set({ name }).where('id', '=', accountId).execute()
    const idle = await begin(cutOff)
    await rename(idle.tx, 'idle')
    await rename(database.db, 'busy') // waits for the row
    const error = await sql`select 1`.execute(idle.tx).then(() => undefined, databaseUnavailable)
    expect(error).toBeInstanceOf(Unavailable)
    expect(
      await database.db.selectFrom('account').select('name').where('id', '=', accountId).executeTakeFirst(),
    ).toEqual({ name: 'busy' })
    await idle.rollback().catch(() => {})
    expect((await sql<{ one: number }>`select 1 as one`.execute(cutOff)).rows).toEqual([{ one: 1 }])
  },
)

test('a database of a later release is left as it is, and one with an unknown earlier step is refused', async () => {
  const note = (name: string) =>
    sql`insert into kysely_migration (name, timestamp) values (${name}, '2030-01-01T00:00:00.000Z')`.execute(
      database.db,
    )
  await note('9999-of-the-next-release')
  await migrate(database.db)
  await note('0001-of-nobody')
  await expect(migrate(database.db)).rejects.toThrow('0001-of-nobody')
})
