/** Attempts that are counted while right ones forget them. */
import { expect, test } from 'vitest'
import { SECOND_FACTOR_LOCKOUT } from '../../domain/lockout.ts'
import { beginAttempt, forgetAttempts } from '../../db/lockouts.ts'
import { useDatabase } from '../database.ts'

const database = useDatabase()
const NOW = new Date('2026-01-01T12:00:00Z')

test('counting and forgetting at the same moment never fail each other', async () => {
  for (let round = 0; round < 20; round++) {
    const subjects = Array.from({ length: 3 }, () => 'factor/ada')
    const outcomes = await Promise.allSettled(subjects.flatMap((subject) => [beginAttempt(database.db, subject, SECOND_FACTOR_LOCKOUT, NOW), forgetAttempts(database.db, subject)]))
    expect(outcomes.filter(({ status }) => status === 'rejected')).toEqual([])
  }
})

test('attempts at the same moment are all counted', async () => {
  const waits = await Promise.all(Array.from({ length: 12 }, () => beginAttempt(database.db, 'factor/bob', SECOND_FACTOR_LOCKOUT, NOW)))
  const { failures } = await database.db.selectFrom('lockout').select('failures').where('subject', '=', 'factor/bob').executeTakeFirstOrThrow()
  expect(failures).toBe(waits.filter((seconds) => seconds === 0).length)
})
