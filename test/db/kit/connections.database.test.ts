/** Connections that break while they are in use must cost their statement, never the process. */
import { sql } from 'kysely'
import { expect, test } from 'vitest'
import { forAccount } from '../../../db/kit/account-share.ts'
import { begin } from '../../../db/kit/begin.ts'
import { databaseUnavailable } from '../../../db/kit/failures.ts'
import { openDatabase } from '../../../db/kit/open.ts'
import { Unavailable } from '../../../domain/problem.ts'
import { useDatabase } from '../../database.ts'

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

test('an account that holds all connections of its share keeps no other waiting, and gets the next', async () => {
  const db = openDatabase({ url: database.url, connectionsMaximum: 8, connectMillisecondsMaximum: 60_000 })
  try {
    const began = await Promise.all([1, 2].map(() => forAccount('greedy', () => begin(db))))
    const waiting = [1, 2, 3, 4, 5, 6, 7].map(() => forAccount('greedy', () => begin(db)))
    const ask = () => sql<{ one: number }>`select 1 as one`.execute(db)
    for (const account of ['modest', 'other'])
      expect((await forAccount(account, ask)).rows, account).toEqual([{ one: 1 }])
    expect((await ask()).rows).toEqual([{ one: 1 }])
    for (const { rollback } of began) await rollback()
    for (const next of waiting) await (await next).rollback()
    expect((await forAccount('greedy', ask)).rows).toEqual([{ one: 1 }])
  } finally {
    await db.destroy()
  }
})

test('what waits for its share for too long meets an outage', async () => {
  const db = openDatabase({ url: database.url, connectionsMaximum: 8, connectMillisecondsMaximum: 200 })
  try {
    const began = await Promise.all([1, 2].map(() => forAccount('greedy', () => begin(db))))
    const error = await forAccount('greedy', () => sql`select 1`.execute(db)).then(() => undefined, databaseUnavailable)
    expect(error).toBeInstanceOf(Unavailable)
    for (const { rollback } of began) await rollback()
    expect((await forAccount('greedy', () => sql<{ one: number }>`select 1 as one`.execute(db))).rows).toHaveLength(1)
  } finally {
    await db.destroy()
  }
})
