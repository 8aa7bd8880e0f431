import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { unexpectedWarnings } from './warnings.ts'

let data: string
const line = (level: number, msg: string) => `${JSON.stringify({ level, msg })}\n`
beforeAll(async () => {
  data = await mkdtemp(join(tmpdir(), 'svccloud-warnings-'))
  await mkdir(join(data, 'logs'))
  await writeFile(join(data, 'logs', 'api.log'), `${line(30, 'ready')}${line(40, 'a host is away')}|WARN|of others\n`)
  await writeFile(join(data, 'logs', 'api.log.1'), `${line(50, 'unexpected error')}{"level":50,"msg":"cut`)
})
afterAll(() => rm(data, { recursive: true }))

test('lines at warn and above are found, also in a log that was cut, but for those that are expected', async () => {
  expect(await unexpectedWarnings(data, [])).toEqual([
    `api.log: ${line(40, 'a host is away').trim()}`,
    `api.log.1: ${line(50, 'unexpected error').trim()}`,
  ])
  expect(await unexpectedWarnings(data, [/a host is away/, /unexpected error/])).toEqual([])
})
test('a folder without logs is no silence', async () => {
  await mkdir(join(data, 'empty', 'logs'), { recursive: true })
  await expect(unexpectedWarnings(join(data, 'empty'), [])).rejects.toThrow('nothing was logged')
})
