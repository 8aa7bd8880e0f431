import { mkdtemp, readFile, rm, stat, truncate, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, expect, it } from 'vitest'
import { boundLogFile, lastLogged, openLogFile } from '../../../embedded/kit/log-file.ts'

const MEBIBYTE = 1024 * 1024

let folder: string
let file: string

beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), 'svccloud-log-'))
  file = join(folder, 'example.log')
})
afterEach(() => rm(folder, { recursive: true, force: true }))

it('keeps one older file when it grew too long, and its writer continues at the start', async () => {
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

it.each([
  ['nothing', '', ''],
  ['the last of many lines', 'first\nsecond\n', 'second'],
  [
    'the error of a line of ours',
    '{"msg":"ok"}\n{"level":50,"msg":"unexpected error","error":{"message":"no room\\nfor it","stack":"Error: no"}}\n',
    'no room',
  ],
  ['what a line of ours says', '{"level":30,"msg":"ready"}\n', 'ready'],
  ['an error above its stack', 'Error: no room\n    at main (a.ts:1)\n\nNode.js v24.0.0\n', 'Error: no room'],
])('says in one line what was logged last: %s', async (_what, text, said) => {
  await writeFile(file, text)
  expect(await lastLogged(file)).toBe(said)
  expect(await lastLogged(join(folder, 'missing.log'))).toBe('')
})
