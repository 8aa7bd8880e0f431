import { spawnSync } from 'node:child_process'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { StartRefused } from '../../embedded/kit/data-folder.ts'
import { setTestClock } from '../../embedded/test-clock.ts'
import { TEST_CLOCK_VARIABLE } from '../../kit/sys/clock.ts'
import { nodeBinary } from '../../kit/sys/process.ts'

let folder = ''
beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'svccloud-clock-'))
})
afterAll(() => rm(folder, { recursive: true }))

const HOUR = 3_600_000
const now = new Date('2026-11-23T12:00:00Z')

test('the clock is kept, goes further, and never back', async () => {
  const file = join(folder, 'clock.json')
  expect(await setTestClock(file, undefined, now)).toBe(0)
  expect(await setTestClock(file, { at: new Date('2026-11-23T14:00:00Z') }, now)).toBe(2 * HOUR)
  expect(await setTestClock(file, undefined, now)).toBe(2 * HOUR)
  expect(await setTestClock(file, { laterMilliseconds: HOUR }, now)).toBe(3 * HOUR)
  await expect(setTestClock(file, { at: new Date('2026-11-23T14:59:00Z') }, now)).rejects.toThrow(StartRefused)
  expect(await setTestClock(file, undefined, now)).toBe(3 * HOUR)
})

test('a process that no supervisor started refuses to run ahead', () => {
  const run = (ahead: string) =>
    spawnSync(nodeBinary(), ['-e', `import('${join(import.meta.dirname, '../../kit/sys/clock.ts')}')`], {
      env: { PATH: '/usr/bin', [TEST_CLOCK_VARIABLE]: ahead },
      encoding: 'utf8',
    })
  expect(run('').status).toBe(0)
  const refused = run('3600000')
  expect(refused.status).not.toBe(0)
  expect(refused.stderr).toContain('for components that npm start has started')
})
