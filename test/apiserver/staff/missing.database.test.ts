import { expect, test } from 'vitest'
import { describeMissing, giveUpMissing } from '../../../apiserver/staff/missing.ts'
import { listAbsences, noteAbsences } from '../../../db/removal/index.ts'
import { systemClock as clock } from '../../../kit/sys/clock.ts'
import { systemRandom as random } from '../../../kit/sys/random.ts'
import { useDatabase } from '../../database.ts'

const database = useDatabase()

test('of thousands of missing resources a thousand are listed with their count, and each can be given up', async () => {
  const { db } = database
  const absent = Array.from({ length: 1_005 }, (_, index) => ({ namespace: 'n', name: `s${10_000 + index}` }))
  await noteAbsences(db, 'Server', { known: 2_000, absent }, clock.now())
  await noteAbsences(db, 'Storage', { known: 2_000, absent: absent.slice(0, 1) }, clock.now())
  const lines = await describeMissing({ db })
  expect(lines).toHaveLength(1_001)
  expect(lines[0]).toMatch(/^Server\/n\/s10000 /)
  expect(lines.at(-1)).toBe('These are the first 1000 of 1005 of the kind Server, 1 of the kind Storage.')
  const decision = { by: 'olga', reason: 'checked' }
  expect(await giveUpMissing({ db, clock, random }, 'Server/n/s11004', decision)).toBe(true)
  expect(await giveUpMissing({ db, clock, random }, 'Server/n/s99999', decision)).toBe(false)
  expect(await listAbsences(db, { limit: 3 })).toHaveLength(3)
})
