/** Attempts that are counted while right ones forget them. */
import { expect, test } from 'vitest'
import { SECOND_FACTOR_LOCKOUT } from '../../../domain/lockout.ts'
import { beginAttempt, forgetAttempts } from '../../../db/identity/lockouts.ts'
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
