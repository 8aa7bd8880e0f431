import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, expect, test } from 'vitest'
import { tryLock } from '../../../kit/sys/file-lock.ts'

let folder: string
beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), 'svccloud-lock-'))
})
afterEach(() => rm(folder, { recursive: true, force: true }))

test('one at a time has the lock', () => {
  const release = tryLock(join(folder, 'lock'))
  expect(release).toBeDefined()
  expect(tryLock(join(folder, 'lock'))).toBeUndefined()
  release?.()
  tryLock(join(folder, 'lock'))?.()
})

test('the lock goes with its holder, however that ends', async () => {
  const file = join(folder, 'lock')
  const program = `
    const { tryLock } = await import(${JSON.stringify(join(import.meta.dirname, '../../../kit/sys/file-lock.ts'))})
    globalThis.release = tryLock(${JSON.stringify(file)})
    console.log('locked')
    setInterval(() => {}, 1000)`
  const holder = spawn(process.execPath, ['--input-type=module', '-e', program], {
    stdio: ['ignore', 'pipe', 'inherit'],
  })
  await once(holder.stdout, 'data')
  expect(tryLock(file)).toBeUndefined()
  holder.kill('SIGKILL')
  await once(holder, 'exit')
  const release = tryLock(file)
  expect(release).toBeDefined()
  release?.()
})

test('a folder that is not there is no lock that somebody has', () => {
  expect(() => tryLock(join(folder, 'missing', 'lock'))).toThrow()
})
