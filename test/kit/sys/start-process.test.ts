import { fork } from 'node:child_process'
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { environment } from '../../../kit/sys/process.ts'
import { SETTINGS_VARIABLE } from '../../../kit/sys/settings.ts'

const START = new URL('../../../kit/sys/start-process.ts', import.meta.url)
const SETTINGS = new URL('../../../db/settings.ts', import.meta.url)
let folder: string
beforeAll(async () => void (folder = await mkdtemp(join(tmpdir(), 'start-process-'))))
afterAll(() => rm(folder, { recursive: true, force: true }))

/** What a process says to its parent that starts with these settings, and how it ends. */
async function started(settings: object) {
  const file = join(folder, 'main.mts')
  await writeFile(
    file,
    `import { startProcess } from '${START.href}'\nimport { MigrationsSettings } from '${SETTINGS.href}'\n` +
      `const { settings } = await startProcess('example', MigrationsSettings)\n` +
      `process.send({ settings, inherited: process.env.${SETTINGS_VARIABLE} ?? null }, () => process.exit(0))\n`,
  )
  const env = { PATH: environment()['PATH'], [SETTINGS_VARIABLE]: JSON.stringify(settings) }
  const child = fork(file, [], { env, execArgv: [], stdio: ['ignore', 'ignore', 'ignore', 'ipc'] })
  const said: unknown[] = []
  child.on('message', (message) => said.push(message))
  const code = await new Promise((resolve) => child.once('close', resolve))
  return { code, said }
}

test('a process has the settings of its parent, and hands them to no program that it starts', async () => {
  const { code, said } = await started({ databaseUrl: 'postgres://secret', logLevel: 'error' })
  expect(said).toEqual([{ settings: { databaseUrl: 'postgres://secret', logLevel: 'error' }, inherited: null }])
  expect(code).toBe(0)
})

test('wrong settings end it, and its parent learns why', async () => {
  const { code, said } = await started({ databaseUrls: 'postgres://secret' })
  expect(said).toEqual([{ refused: expect.stringContaining('databaseUrls: there is no such setting') }])
  expect(JSON.stringify(said)).not.toContain('secret')
  expect(code).toBe(1)
})
