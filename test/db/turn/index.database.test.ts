/** Turns at what is outside of the database. */
import { expect, test } from 'vitest'
import { inTurn, type Turn } from '../../../db/turn/index.ts'
import { Unavailable } from '../../../domain/problem.ts'
import { systemRandom } from '../../../kit/sys/random.ts'
import { fastClock } from '../../controllers/cloud.ts'
import { useDatabase } from '../../database.ts'

const database = useDatabase()
const parts = () => ({ db: database.db, clock: fastClock, random: systemRandom })
const take = <R>(name: string, work: (turn: Turn) => Promise<R>, waitMilliseconds = 0): Promise<R | 'busy'> =>
  inTurn<R | 'busy'>(parts(), { name, waitMilliseconds }, work, () => 'busy')
const isOurs = ({ require }: Turn) => database.db.transaction().execute((tx) => require(tx))

test('one has it at a time, and others have others', async () => {
  const [begun, end] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()]
  const first = take('one', async (turn) => {
    begun.resolve()
    await end.promise
    await isOurs(turn)
    return 'first'
  })
  await begun.promise
  expect(await take('one', async () => 'second')).toBe('busy')
  expect(await take('other', async () => 'other')).toBe('other')
  const second = take('one', async () => 'second', 60_000)
  end.resolve()
  expect(await Promise.all([first, second])).toEqual(['first', 'second'])
})

test('it is over when the work fails', async () => {
  await expect(take('failing', () => Promise.reject(new Error('no')))).rejects.toThrow('no')
  expect(await take('failing', async () => 'next')).toBe('next')
})

test('it is renewed while it is worked in, for longer than it lasts', async () => {
  await take('long', async (turn) => {
    await fastClock.sleep(25_000)
    expect(await take('long', async () => 'second')).toBe('busy')
    await isOurs(turn)
  })
})

test('what a process that died has left is taken, and nothing is written for whom it was taken from', async () => {
  await database.db
    .insertInto('turn')
    .values({ name: 'left', holder: crypto.randomUUID(), ends_at: fastClock.now() })
    .execute()
  expect(await take('left', async () => 'next')).toBe('next')
  await take('lost', async (turn) => {
    await database.db.updateTable('turn').set({ holder: crypto.randomUUID() }).where('name', '=', 'lost').execute()
    await expect(isOurs(turn)).rejects.toBeInstanceOf(Unavailable)
  })
})
