import { appendFileSync, closeSync, mkdtempSync, readSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, expect, it } from 'vitest'
import { ConsoleLog } from '../../../agents/node/drivers/hypervisor/console-log.ts'
import { openInputPipe, openSerialLine, type SerialLine } from '../../../agents/node/drivers/hypervisor/serial-line.ts'
import { systemClock } from '../../../kit/sys/clock.ts'
import { silentLog } from '../../../kit/sys/log.ts'
import { until } from '../../eventually.ts'

let folder: string
let line: SerialLine | undefined
let printed: string
const print = (text: string) => appendFileSync(join(folder, 'console.log'), text)
const open = () =>
  (line = openSerialLine({
    folder,
    log: new ConsoleLog(folder),
    onOutput: (bytes) => void (printed += bytes.toString()),
    clock: systemClock,
    logger: silentLog,
  }))

beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'svccloud-line-'))
  printed = ''
  writeFileSync(join(folder, 'console.log'), '')
})
afterEach(() => {
  line?.close()
  line = undefined
  rmSync(folder, { recursive: true })
})

it('passes on what is printed, also what comes last', async () => {
  const { close } = open()
  print('boot\n')
  await until(
    'what was printed',
    () => printed,
    (text) => text === 'boot\n',
  )
  print('good night\n')
  close()
  expect(printed).toBe('boot\ngood night\n')
})

it('types into the pipe, also after the previous typist has left, and not more than the guest accepts', async () => {
  const guest = await openInputPipe(folder)
  const taken = (length: number) => {
    const bytes = Buffer.alloc(length)
    return bytes.subarray(0, readSync(guest, bytes)).toString()
  }
  open().close()
  const { write } = open()
  expect(write(Buffer.from('hostname\n'))).toBe(true)
  expect(taken(64)).toBe('hostname\n')
  expect(write(Buffer.alloc(200 * 1024, 'x'))).toBe(true)
  expect(write(Buffer.alloc(200 * 1024, 'x'))).toBe(false)
  closeSync(guest)
})

it('follows a guest that nobody can type to', async () => {
  const { write } = open()
  expect(write(Buffer.from('hostname\n'))).toBe(false)
  print('still here\n')
  await until(
    'what was printed',
    () => printed,
    (text) => text === 'still here\n',
  )
})
