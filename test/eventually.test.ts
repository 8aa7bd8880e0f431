import { expect, test } from 'vitest'
import { eventually, Unrecoverable, until } from './eventually.ts'

test('what becomes true is waited for and answered, also over failures', async () => {
  let count = 0
  const look = () => {
    count++
    if (count === 2) throw new Error('away')
    return count
  }
  expect(await until('the third look', look, (count) => count > 2)).toBe(3)
  expect(await eventually('the sixth look', () => look() > 5 && 'here')).toBe('here')
})

test('what never does fails with what was observed last, or with why nothing was', async () => {
  await expect(
    until(
      'a prompt',
      () => ({ printed: `${'x'.repeat(5_000)} the end` }),
      () => false,
      1,
    ),
  ).rejects.toThrow(/^waited 1 ms in vain for a prompt; there was \{"printed":"x{992} the end"\}$/)
  const failure = new Error('away')
  await expect(eventually('an answer', () => Promise.reject(failure), 1)).rejects.toMatchObject({
    message: 'waited 1 ms in vain for an answer',
    cause: failure,
  })
})

test('what is hopeless is not waited for', async () => {
  let count = 0
  await expect(
    eventually('the dead', () => {
      count++
      throw new Unrecoverable('it is dead')
    }),
  ).rejects.toThrow('it is dead')
  expect(count).toBe(1)
})
