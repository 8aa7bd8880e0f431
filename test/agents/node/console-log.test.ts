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

it('gives what was written while nobody listened, once', () => {
  const log = new ConsoleLog(folder)
  expect(log.history().length).toBe(0)
  writeFileSync(file, 'boot\n')
  expect(log.unread().toString()).toBe('boot\n')
  appendFileSync(file, 'seen on the line')
  log.passed('seen on the line'.length, () => Buffer.alloc(0))
  appendFileSync(file, ' and not')
  expect(log.unread().toString()).toBe(' and not')
  expect(new ConsoleLog(folder).history().toString()).toBe('boot\nseen on the line and not')
})

it('is cut when it is long, and the tail outlives the cut', () => {
  const log = new ConsoleLog(folder)
  const chunk = Buffer.alloc(64 * 1024, 'x')
  for (let count = 0; count < 16; count++) {
    appendFileSync(file, chunk)
    log.passed(chunk.length, () => Buffer.from('the tail'))
  }
  expect(statSync(file).size).toBe(0)
  appendFileSync(file, ' goes on')
  expect(new ConsoleLog(folder).history().toString()).toBe('the tail goes on')
})

it('reads no more than the tail of a log that grew without an agent', () => {
  writeFileSync(file, Buffer.concat([Buffer.alloc(3_000_000, 'a'), Buffer.from('end')]))
  const history = new ConsoleLog(folder).history()
  expect([history.length, history.subarray(-4).toString()]).toEqual([65_536, 'aend'])
})
