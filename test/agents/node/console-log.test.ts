import { appendFileSync, mkdtempSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, expect, it } from 'vitest'
import { ConsoleLog } from '../../../agents/node/drivers/hypervisor/console-log.ts'

let folder: string
let file: string
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'svccloud-console-'))
  file = join(folder, 'console.log')
})
afterEach(() => rmSync(folder, { recursive: true }))

it('gives what was written since the last reading, once', () => {
  const log = new ConsoleLog(folder)
  expect(log.history().length).toBe(0)
  writeFileSync(file, 'boot\n')
  expect(log.unread().toString()).toBe('boot\n')
  appendFileSync(file, 'login: ')
  expect(log.unread().toString()).toBe('login: ')
  expect(log.unread().length).toBe(0)
  expect(new ConsoleLog(folder).history().toString()).toBe('boot\nlogin: ')
})

it('gives the disk back what nobody asks for again, and loses nothing of the rest', async () => {
  const log = new ConsoleLog(folder)
  const chunk = Buffer.alloc(64 * 1024, 'x')
  for (let count = 0; count < 64; count++) {
    appendFileSync(file, chunk)
    expect(log.unread().length).toBe(chunk.length)
    await log.trim()
  }
  const { size, blocks } = statSync(file)
  expect(size).toBe(64 * chunk.length)
  expect(blocks * 512).toBeLessThan(1.5 * 1024 * 1024)
  appendFileSync(file, 'goes on')
  expect(log.unread().toString()).toBe('goes on')
  const history = new ConsoleLog(folder).history()
  expect([history.length, history.toString().replaceAll('x', '')]).toEqual([65_536, 'goes on'])
})

it('reads no more than the tail of a log that grew without an agent', () => {
  writeFileSync(file, Buffer.concat([Buffer.alloc(3_000_000, 'a'), Buffer.from('end')]))
  const history = new ConsoleLog(folder).history()
  expect([history.length, history.subarray(-4).toString()]).toEqual([65_536, 'aend'])
})
