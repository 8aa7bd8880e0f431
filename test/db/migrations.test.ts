import { readdir } from 'node:fs/promises'
import { expect, test } from 'vitest'

/** Two of one number, or one before what databases have run already, would stop every upgrade. */
test('migrations are numbered without a gap, and each number is there once', async () => {
  const files = (await readdir('db/migrations')).sort()
  expect(files.filter((file) => !/^\d{4}(-[a-z]+)+\.ts$/.test(file))).toEqual([])
  expect(files.map((file) => Number(file.slice(0, 4)))).toEqual(files.map((_file, index) => index + 1))
})
