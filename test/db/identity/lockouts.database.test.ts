/** Attempts that are counted while right ones forget them. */
import { expect, test } from 'vitest'
import { SECOND_FACTOR_LOCKOUT } from '../../../domain/identity/lockout.ts'
import { beginAttempt, forgetAttempts, forgetOldAttempts, waitForAttempt } from '../../../db/identity/lockouts.ts'
import { upkeep } from '../../../apiserver/identity/upkeep.ts'
import { silentLog } from '../../../kit/sys/log.ts'
import { systemRandom } from '../../../kit/sys/random.ts'
import { movableClock } from '../../apiserver/identity/harness.ts'
import { useDatabase } from '../../database.ts'

const database = useDatabase()
const NOW = new Date('2026-01-01T12:00:00Z')

test('counting and forgetting at the same moment never fail each other', async () => {
  const rule = { ...SECOND_FACTOR_LOCKOUT, failuresMaximum: 1_000_000 }
  const failures: unknown[] = []
  const many = (work: () => Promise<unknown>) =>
    Array.from({ length: 10 }, async () => {
      for (let turn = 0; turn < 60; turn++) await work().catch((error: unknown) => failures.push(error))
    })
  await Promise.all([
    ...many(() => beginAttempt(database.db, 'factor/ada', rule, NOW)),
    ...many(() => forgetAttempts(database.db, 'factor/ada')),
  ])
  expect(failures).toEqual([])
})

test('clean-up forgets what has been quiet, never a lock that holds or was over not long ago', async () => {
  const { db } = database
  const hours = (count: number) => new Date(NOW.getTime() + count * 3_600_000)
  const attempts = async (subject: string, count: number, at: Date, lockSeconds: number) => {
    const rule = { ...SECOND_FACTOR_LOCKOUT, failuresMaximum: 2, lockSeconds, lockSecondsMaximum: 200_000 }
    for (let attempt = 0; attempt < count; attempt++) await beginAttempt(db, subject, rule, at)
  }
  await attempts('clean/quiet', 1, hours(0), 60)
  await attempts('clean/over', 2, hours(0), 60)
  await attempts('clean/over lately', 2, hours(0), 30 * 3_600)
  await attempts('clean/locked', 2, hours(0), 50 * 3_600)
  await attempts('clean/recent', 1, hours(47), 60)
  await forgetOldAttempts(db, hours(24))
  const left = await db.selectFrom('lockout').select('subject').where('subject', 'like', 'clean/%').execute()
  expect(left.map(({ subject }) => subject).sort()).toEqual(['clean/locked', 'clean/over lately', 'clean/recent'])
  expect(await waitForAttempt(db, 'clean/locked', hours(48))).toBe(2 * 3_600)
})

test('upkeep forgets no lock of the last day', async () => {
  const { db } = database
  const clock = movableClock(NOW.toISOString())
  const lockedUntil = async () =>
    (await db.selectFrom('lockout').select('locked_until').where('subject', '=', 'kept').executeTakeFirst())
      ?.locked_until
  for (let attempt = 0; attempt < 5; attempt++) await beginAttempt(db, 'kept', SECOND_FACTOR_LOCKOUT, clock.now())
  const until = await lockedUntil()
  expect(until).toEqual(new Date(NOW.getTime() + 900_000))
  clock.move(86_400)
  await upkeep({ db, clock, random: systemRandom, log: silentLog }, new Date(0))
  expect(await lockedUntil()).toEqual(until)
  clock.move(901)
  await upkeep({ db, clock, random: systemRandom, log: silentLog }, new Date(0))
  expect(await lockedUntil()).toBeUndefined()
})

test('attempts at the same moment are all counted', async () => {
  const waits = await Promise.all(
    Array.from({ length: 12 }, () => beginAttempt(database.db, 'factor/bob', SECOND_FACTOR_LOCKOUT, NOW)),
  )
  const { failures } = await database.db
    .selectFrom('lockout')
    .select('failures')
    .where('subject', '=', 'factor/bob')
    .executeTakeFirstOrThrow()
  expect(failures).toBe(waits.filter((seconds) => seconds === 0).length)
})
