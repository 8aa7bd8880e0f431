/** Programs in a guest, by an agent that answers well or badly. */
import { createServer, type Server } from 'node:net'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, expect, it } from 'vitest'
import { runInGuest } from '../../../../agents/node/guest-agent/run-in-guest.ts'
import { systemClock as clock } from '../../../../kit/sys/clock.ts'

const SENTINEL = 0xff
type Answer = (command: string, given: Record<string, unknown>) => unknown

let folder: string
let server: Server
let asked: { command: string; given: Record<string, unknown> }[]
let answer: Answer

beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), 'agent-'))
  asked = []
  server = createServer((socket) => {
    let text = ''
    socket.on('error', () => {})
    socket.on('data', (bytes) => {
      text += bytes.toString('latin1').replaceAll(String.fromCharCode(SENTINEL), '')
      for (let end = text.indexOf('\n'); end >= 0; end = text.indexOf('\n')) {
        const request = JSON.parse(text.slice(0, end))
        text = text.slice(end + 1)
        const given = request.arguments ?? {}
        const isSync = request.execute === 'guest-sync-delimited'
        if (!isSync) asked.push({ command: request.execute, given })
        const line = `${JSON.stringify({ return: isSync ? given.id : answer(request.execute, given) })}\n`
        socket.write(isSync ? Buffer.concat([Buffer.of(SENTINEL), Buffer.from(line)]) : line)
      }
    })
  })
  await new Promise<void>((resolve) => server.listen(join(folder, 'agent.sock'), resolve))
})
afterEach(async () => {
  await new Promise((resolve) => server.close(resolve))
  await rm(folder, { recursive: true })
})

const run = (timeoutMilliseconds = 30_000, of = clock) =>
  runInGuest(
    { socket: join(folder, 'agent.sock'), clock: of, timeoutMilliseconds },
    { path: '/usr/libexec/svccloud/machine', input: Buffer.from('a secret') },
  )
const base64 = (text: string) => Buffer.from(text).toString('base64')

it('hands the input over as input, never as an argument, and waits for the end', async () => {
  let looks = 0
  answer = (command) =>
    command === 'guest-exec'
      ? { pid: 7 }
      : (looks += 1) < 3
        ? { exited: false }
        : { exited: true, exitcode: 0, 'out-data': base64('done') }
  expect((await run()).toString()).toBe('done')
  expect(asked[0]).toEqual({
    command: 'guest-exec',
    given: { path: '/usr/libexec/svccloud/machine', 'input-data': base64('a secret'), 'capture-output': true },
  })
  expect(asked.slice(1).map(({ command, given }) => [command, given])).toEqual(
    Array.from({ length: 3 }, () => ['guest-exec-status', { pid: 7 }]),
  )
})

it('asks a program that runs for long less and less often', async () => {
  let looks = 0
  answer = (command) =>
    command === 'guest-exec' ? { pid: 7 } : (looks += 1) < 20 ? { exited: false } : { exited: true, exitcode: 0 }
  const pauses: number[] = []
  await run(30_000, { ...clock, sleep: async (milliseconds) => void pauses.push(milliseconds) })
  expect(pauses[0]).toBe(100)
  expect(pauses.at(-1)).toBe(1_000)
})

it.each<[string, Answer, string]>([
  [
    'ends with a fault',
    (command) => (command === 'guest-exec' ? { pid: 7 } : { exited: true, exitcode: 2, 'err-data': base64('broken') }),
    'ended with 2: broken',
  ],
  ['starts nothing', () => ({}), 'started nothing'],
  ['answers something else', (command) => (command === 'guest-exec' ? { pid: 7 } : ['?']), 'something else'],
  [
    'answers without an end',
    (command) =>
      command === 'guest-exec' ? { pid: 7 } : { exited: true, exitcode: 0, 'out-data': 'A'.repeat(100_000) },
    'more than',
  ],
])('fails when the guest %s', async (_what, behaviour, why) => {
  answer = behaviour
  await expect(run()).rejects.toThrow(why)
})

it('does not wait long for the greeting of an agent that heard nothing, as one does that boots', async () => {
  server.removeAllListeners('connection')
  server.on('connection', (socket) => void socket.resume())
  const startedAt = clock.monotonicMilliseconds()
  const hasty = { ...clock, after: (milliseconds: number, act: () => void) => clock.after(milliseconds / 100, act) }
  await expect(run(2_000_000, hasty)).rejects.toThrow('does not answer')
  expect(clock.monotonicMilliseconds() - startedAt).toBeLessThan(10_000)
})

it('gives up a program that does not end', async () => {
  answer = (command) => (command === 'guest-exec' ? { pid: 7 } : { exited: false })
  await expect(run(500)).rejects.toThrow('does not answer')
})
