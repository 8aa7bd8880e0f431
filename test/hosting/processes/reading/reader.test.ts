/** The process that reads for one control plane, with API servers and with programs in its place that answer what they
 *  should not. */
import { createServer, type Server } from 'node:https'
import type { IncomingMessage, ServerResponse } from 'node:http'
import { mkdtemp, readFile, rm } from 'node:fs/promises'
import type { AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, expect, test } from 'vitest'
import { RunningPrograms } from '../../../../hosting/processes/programs-running.ts'
import { Reader, READER } from '../../../../hosting/processes/reading/reader.ts'
import { asUser } from '../../../../hosting/processes/users.ts'
import { openCredentials } from '../../../../hosting/core/credentials.ts'
import { Refused } from '../../../../hosting/core/refused.ts'
import { type Clock, systemClock } from '../../../../kit/sys/clock.ts'
import { silentLog } from '../../../../kit/sys/log.ts'
import { nodeBinary, signalProcess } from '../../../../kit/sys/process.ts'
import { systemRandom } from '../../../../kit/sys/random.ts'
import { until } from '../../../eventually.ts'

const parts = { clock: systemClock, random: systemRandom }
/** Nothing is waited for as long as it may take. */
const hasty = {
  ...systemClock,
  after: (milliseconds: number, then: () => void) => systemClock.after(Math.min(milliseconds, 1_000), then),
}
const stopping = new AbortController()
let folder: string
const ends: (() => Promise<void>)[] = []
beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), 'svccloud-reader-'))
  await openCredentials({ folder, hosts: [], ...parts })
})
afterEach(async () => {
  for (const end of ends.splice(0)) await end()
  await rm(folder, { recursive: true })
})

type Serve = (request: IncomingMessage, response: ServerResponse) => void

/** An API server of the cluster's authority. */
async function serve(answer: Serve): Promise<string> {
  const pem = (name: string) => readFile(join(folder, name), 'utf8')
  const server: Server = createServer({ cert: await pem('apiserver.crt'), key: await pem('apiserver.key') }, answer)
  await new Promise<void>((resolve) => server.listen({ host: '127.0.0.1', port: 0 }, resolve))
  ends.push(async () => {
    server.closeAllConnections()
    server.close()
  })
  return `https://127.0.0.1:${(server.address() as AddressInfo).port}` // it listens on a port
}

/** Programs that run another one in the place of the reader. */
class Others extends RunningPrograms {
  readonly #code: string | undefined
  constructor(code: string | undefined) {
    super(folder, { ...parts, log: silentLog, signal: stopping.signal })
    this.#code = code
  }
  override start(...[name, command, how]: Parameters<RunningPrograms['start']>): Promise<void> {
    return super.start(name, this.#code === undefined ? command : [nodeBinary(), '-e', this.#code], how)
  }
}

async function openReader(
  code?: string,
  clock: Clock = systemClock,
): Promise<{ readonly reader: Reader; readonly pid: () => number | undefined }> {
  const programs = new Others(code)
  const reader = new Reader({
    programs,
    clock,
    as: (words) => asUser(undefined, words),
  })
  ends.push(() => programs.stop([READER]))
  await reader.start()
  return { reader, pid: () => programs.pid(READER) }
}

const NODES = { items: [{ metadata: { name: 'one', resourceVersion: '1' }, status: {} }] }
const isNode: Serve = (request, response) =>
  void response.end(request.url?.startsWith('/api/v1/nodes') ? JSON.stringify(NODES) : 'ok')
const known = { kubeletVersion: '', address: '', podCidr: '', marked: '', isReady: false }

test('what an API server answers is what is answered', async () => {
  const api = await serve(isNode)
  const { reader } = await openReader()
  expect(await reader.ask('look', { apis: [api, null], members: [api] })).toEqual({
    apis: [true, false],
    members: [false],
  })
  expect(await reader.ask('nodes', api)).toEqual([{ ...known, name: 'one' }])
  expect(await reader.ask('removeNode', api, 'one')).toBeUndefined()
})

test('what is refused is refused here, too', async () => {
  const api = await serve(isNode)
  const { reader } = await openReader()
  const object = { apiVersion: 'v1', kind: 'Pod', metadata: { name: 'a', namespace: 'b' } }
  const setting = reader.ask('setAgent', api, [object])
  await expect(setting).rejects.toBeInstanceOf(Refused)
  await expect(setting).rejects.toMatchObject({ reason: 'state_not_allowed', message: 'An agent has no v1 Pod.' })
})

const endless =
  (start: string, part: string): Serve =>
  (_request, response) => {
    response.write(start)
    const more = () => {
      while (response.write(part));
      response.once('drain', more)
    }
    more()
  }
const HOSTILE: readonly (readonly [string, Serve])[] = [
  ['garbage', (_request, response) => void response.end('<html>no</html>')],
  ['another shape', (_request, response) => void response.end('{"items":{"length":1e9}}')],
  ['a list without end', endless('{"items":[', '{"metadata":{"name":"one"}},'.repeat(4_096))],
  ['nothing but brackets', endless('', '['.repeat(65_536))],
  ['half an answer', (_request, response) => void (response.write('{"items"'), response.destroy())],
]

test.each(HOSTILE)('an API server that answers %s harms nobody else', async (_what, answer) => {
  const [hostile, good] = [await serve(answer), await serve(isNode)]
  const [one, other] = [await openReader(), await openReader()]
  const bad = one.reader.ask('nodes', hostile).then(
    () => 'an answer',
    () => 'a failure',
  )
  expect(await other.reader.ask('nodes', good)).toEqual([{ ...known, name: 'one' }])
  expect(await bad).toBe('a failure')
  // And not for good: whoever answers well later is heard.
  const again = () => one.reader.ask('nodes', good).catch(() => [])
  await until('an answer', again, (nodes) => nodes.length === 1)
})

const SAY = 'const say = (said) => process.stdout.write(JSON.stringify(said) + "\\n");'
const [SENSELESS, SILENT] = ['what cannot be meant', 'silent for too long']
const HANDED_OVER: readonly (readonly [what: string, code: string, why: string])[] = [
  [
    'another shape',
    `${SAY} process.stdin.once('data', () => say({ id: 0, value: [{ name: 1 }] })); setInterval(() => {}, 1000)`,
    SENSELESS,
  ],
  ['garbage', `process.stdin.once('data', () => console.log('no JSON')); setInterval(() => {}, 1000)`, SENSELESS],
  [
    'what nobody asked',
    `${SAY} process.stdin.once('data', () => say({ id: 7 })); setInterval(() => {}, 1000)`,
    SENSELESS,
  ],
  [
    'a line without end',
    `const more = () => { while (process.stdout.write('x'.repeat(65536))); process.stdout.once('drain', more) };
     process.stdin.once('data', more)`,
    SENSELESS,
  ],
  ['nothing', 'setInterval(() => {}, 1000)', SILENT],
]

test.each(HANDED_OVER)('a reader that says %s is ended, and another one started', async (_what, code, why) => {
  const { reader, pid } = await openReader(code, why === SILENT ? hasty : systemClock)
  const first = await until(
    'a process',
    async () => pid(),
    (found) => found !== undefined,
  )
  await expect(reader.ask('nodes', 'https://127.0.0.1:1')).rejects.toThrow(why)
  await until(
    'that process to be gone',
    async () => signalProcess(first ?? 0, 0),
    (isThere) => !isThere,
  )
  await until(
    'another one',
    async () => pid(),
    (found) => found !== undefined && found !== first,
  )
})

test('one that is killed fails what was asked, and another one answers', async () => {
  const api = await serve(isNode)
  const silent = await serve(() => {})
  const { reader, pid } = await openReader()
  await reader.ask('nodes', api)
  const asked = reader.ask('nodes', silent)
  signalProcess(pid() ?? 0, 'SIGKILL')
  await expect(asked).rejects.toThrow('is started again')
  const again = () => reader.ask('nodes', api).catch(() => [])
  await until('an answer', again, (nodes) => nodes.length === 1)
})
