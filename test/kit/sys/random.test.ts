import { expect, test } from 'vitest'
import { newUuid, systemRandom } from '../../../kit/sys/random.ts'

test.each([0, 1, 16, 64, 65, 5_000])('%i bytes are as many as were asked for', (count) => {
  expect(systemRandom.bytes(count)).toHaveLength(count)
})

test(
  'no byte is given twice: ids stay different beyond what is fetched at once, and what was given is the caller’s ' +
    'own',
  () => {
    const given = systemRandom.bytes(16)
    const copy = Buffer.from(given)
    const ids = new Set(Array.from({ length: 2_000 }, () => newUuid(systemRandom)))
    expect(ids.size).toBe(2_000)
    expect(given).toEqual(copy)
    given.fill(0)
    expect(systemRandom.bytes(16).equals(given)).toBe(false)
  },
)

test('fractions are in [0, 1) and differ', () => {
  const fractions = Array.from({ length: 1_000 }, () => systemRandom.fraction())
  expect(fractions.every((fraction) => fraction >= 0 && fraction < 1)).toBe(true)
  expect(new Set(fractions).size).toBeGreaterThan(990)
})
