/** What guests answer, or do not, while a point of their disks is made. The port is a socket, as QEMU's is: one client
 *  at a time. */
import { access, mkdtemp, rm, writeFile } from 'node:fs/promises'
import { createServer, type Server, type Socket } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, expect, it } from 'vitest'
import { type Freezer, GUEST_AGENT_FILES, openFreezer } from '../../../../agents/node/guest-agent/freeze.ts'
import { type Clock, systemClock } from '../../../../kit/sys/clock.ts'
import { silentLog } from '../../../../kit/sys/log.ts'
import { eventually } from '../../../eventually.ts'

type Respond = (command: string, id: number, socket: Socket) => unknown

let folder: string
let server: Server | undefined
let frozen: boolean
let commands: string[]
let closing: AbortController
/** The guest's agent thaws what it froze. */
const honest: Respond = (command, id) => {
  if (command === 'guest-sync-delimited') return { return: id }
  const before = frozen
  frozen = command === 'guest-fsfreeze-freeze'
  return { return: before === frozen ? 0 : 2 }
}
/** Faster, and never so fast that an honest guest would be late. */
const clock: Clock = {
  ...systemClock,
  sleep: (milliseconds, signal) => systemClock.sleep(milliseconds / 100, signal),
  after: (milliseconds, work) => systemClock.after(milliseconds / 5, work),
}

beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), 'svccloud-freeze-'))
  frozen = false
  commands = []
  closing = new AbortController()
})
afterEach(async () => {
  closing.abort()
  server?.close()
  server = undefined
  await rm(folder, { recursive: true })
})

/** What `respond` answers is sent as JSON; text and bytes as they are, and nothing when it answers nothing. */
async function serve(respond: Respond): Promise<void> {
  server = createServer((socket) => {
    let text = ''
    socket.on('error', () => socket.destroy())
    socket.on('data', (bytes: Buffer) => {
      const lines = (text + bytes.toString('latin1')).split('\n')
      text = lines.pop() ?? ''
      for (const line of lines) {
        const { execute, arguments: input } = JSON.parse(line.replaceAll('\u00ff', ''))
        commands.push(execute)
        const answer = respond(execute, input?.id, socket)
        if (answer === undefined) continue
        if (execute === 'guest-sync-delimited') socket.write(Buffer.of(0xff))
        socket.write(typeof answer === 'string' || Buffer.isBuffer(answer) ? answer : `${JSON.stringify(answer)}\n`)
      }
    })
  })
  await new Promise<void>((resolve) => server?.listen(join(folder, GUEST_AGENT_FILES.socket), resolve))
}
const freezer = (): Freezer => openFreezer({ clock, log: silentLog, signal: closing.signal })
const guest = (isOpen = true) => ({
  folder,
  execute: async (command: string) =>
    command === 'query-chardev' ? [{ label: 'agent', 'frontend-open': isOpen }] : undefined,
})
const isMarked = () =>
  access(join(folder, GUEST_AGENT_FILES.frozen)).then(
    () => true,
    () => false,
  )
const freezes = ['guest-sync-delimited', 'guest-fsfreeze-freeze']
const thaws = ['guest-sync-delimited', 'guest-fsfreeze-thaw']

it('freezes before the work, thaws after it, and says so on the disk between', async () => {
  await serve(honest)
  const done = await freezer().whileFrozen(guest(), async () => [frozen, await isMarked()])
  expect(done).toEqual({ result: [true, true], isFrozen: true })
  expect([frozen, await isMarked()]).toEqual([false, false])
  expect(commands).toEqual([...freezes, ...thaws])
})

it('thaws when the work fails', async () => {
  await serve(honest)
  const work = () => Promise.reject(new Error('no room'))
  await expect(freezer().whileFrozen(guest(), work)).rejects.toThrow('no room')
  await eventually('the end', async () => (!frozen && !(await isMarked())) || undefined)
})

it('does not wait for a guest in which nobody has the port open, and asks it nothing', async () => {
  await serve(honest)
  expect(await freezer().whileFrozen(guest(false), async () => frozen)).toEqual({ result: false, isFrozen: false })
  expect(commands).toEqual([])
})

it('works without a port, as guests of an earlier version have none', async () => {
  expect(await freezer().whileFrozen(guest(), async () => 7)).toEqual({ result: 7, isFrozen: false })
  expect(await isMarked()).toBe(false)
})

const flood = (socket: Socket) => {
  const bytes = Buffer.alloc(1_048_576, '[')
  const more = () => void (socket.destroyed || socket.write(bytes, more))
  more()
}
it.each<[string, Respond]>([
  ['answers nothing', () => undefined],
  ['answers half a line', (_command, id) => `{"return": ${id}`],
  ['answers another question', () => ({ return: 1 })],
  ['answers no JSON', () => 'yes\n'],
  ['answers without an end', (_command, _id, socket) => flood(socket)],
  ['hangs up', (_command, _id, socket) => void socket.destroy()],
])('does the work unfrozen when the agent %s', async (_name, respond) => {
  await serve(respond)
  expect(await freezer().whileFrozen(guest(), async () => 'done')).toEqual({ result: 'done', isFrozen: false })
  expect(await isMarked()).toBe(false)
})

it.each<[string, (socket: Socket) => unknown]>([
  ['refuses', () => ({ error: { class: 'CommandNotFound', desc: 'The command guest-fsfreeze-freeze is disabled' } })],
  ['answers something else', () => ({ return: { frozen: true } })],
  ['answers without an end', (socket) => flood(socket)],
  ['does not answer in time', () => undefined],
])('thaws when the agent is asked to freeze and %s', async (_name, answer) => {
  await serve((command, id, socket) =>
    command === 'guest-fsfreeze-freeze' ? answer(socket) : honest(command, id, socket),
  )
  frozen = true
  expect(await freezer().whileFrozen(guest(), async () => 'done')).toEqual({ result: 'done', isFrozen: false })
  expect([frozen, await isMarked()]).toEqual([false, false])
})

it('claims nothing of a point whose guest had thawed itself', async () => {
  await serve(honest)
  const work = async () => void (frozen = false)
  expect(await freezer().whileFrozen(guest(), work)).toMatchObject({ isFrozen: false })
})

it('keeps thawing an agent that does not confirm it', async () => {
  let refusals = 3
  await serve((command, id, socket) =>
    command === 'guest-fsfreeze-thaw' && refusals-- > 0 ? undefined : honest(command, id, socket),
  )
  expect(await freezer().whileFrozen(guest(), async () => frozen)).toEqual({ result: true, isFrozen: false })
  expect(await isMarked()).toBe(true)
  await eventually('the end', async () => (!frozen && !(await isMarked())) || undefined)
})

it('thaws what an agent that was killed has left', async () => {
  await serve(honest)
  frozen = true
  await writeFile(join(folder, GUEST_AGENT_FILES.frozen), '')
  freezer().recover(folder, 'this-host')
  await eventually('the end', async () => (!frozen && !(await isMarked())) || undefined)
})

it('thaws a guest that came from a host where it was frozen', async () => {
  await serve(honest)
  frozen = true
  freezer().recover(folder, 'another-host')
  await eventually('the end', () => !frozen || undefined)
})

it('leaves a guest alone that nobody froze', async () => {
  await serve(honest)
  const own = freezer()
  own.recover(folder, 'this-host')
  await own.whileFrozen(guest(), async () => undefined)
  expect(commands).toEqual([...freezes, ...thaws])
})
