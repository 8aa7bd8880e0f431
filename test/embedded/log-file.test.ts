import { mkdtemp, readFile, rm, stat, truncate, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, expect, it } from 'vitest'
import { boundLogFile, logTail, openLogFile } from '../../embedded/log-file.ts'

const MEBIBYTE = 1024 * 1024

let folder: string
let file: string

beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), 'svccloud-log-'))
  file = join(folder, 'example.log')
})
afterEach(() => rm(folder, { recursive: true, force: true }))

it('keeps a file that grew too long once, and its writer goes on at the start', async () => {
  const writer = await openLogFile(file)
  await writer.write('first\n')
  await truncate(file, 20 * MEBIBYTE)
  await boundLogFile(file)
  await writer.write('second\n')
  await writer.close()
  expect(await readFile(file, 'utf8')).toBe('second\n')
  expect((await stat(`${file}.1`)).size).toBe(20 * MEBIBYTE)
})

it('leaves a short file and a missing one alone', async () => {
  await boundLogFile(file)
  await writeFile(file, 'short\n')
  await boundLogFile(file)
  expect(await readFile(file, 'utf8')).toBe('short\n')
  await expect(stat(`${file}.1`)).rejects.toThrow(/ENOENT/)
})

it('shows the last lines', async () => {
  await writeFile(file, Array.from({ length: 50 }, (_, index) => `line ${index}\n`).join(''))
  const lines = (await logTail(file)).split('\n')
  expect([lines.length, lines[0], lines.at(-1)]).toEqual([20, 'line 30', 'line 49'])
  expect(await logTail(join(folder, 'missing.log'))).toBe('')
})
