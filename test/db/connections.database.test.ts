/** Connections that break while they are in use must cost their statement, never the process. */
import { sql } from 'kysely'
import { expect, test } from 'vitest'
import { openDatabase } from '../../db/open.ts'
import { useDatabase } from '../database.ts'

const database = useDatabase()

test('a transaction whose connection breaks between two statements fails, and the next one works', async () => {
  const lost: unknown[] = []
  const isHeard = Promise.withResolvers<void>()
  const db = openDatabase({
    url: database.url,
    connectionsMaximum: 1,
    onConnectionLost: (error) => {
      lost.push(error)
      isHeard.resolve()
    },
  })
  try {
    await expect(
      db.transaction().execute(async (tx) => {
        await sql`select 1`.execute(tx)
        await database.breakConnections()
        await isHeard.promise // between two statements: nothing is under way that could fail instead
        await sql`select 2`.execute(tx)
      }),
    ).rejects.toThrow()
    expect(lost).not.toHaveLength(0)
    expect((await sql<{ three: number }>`select 3 as three`.execute(db)).rows).toEqual([{ three: 3 }])
  } finally {
    await db.destroy()
  }
})
