/** The reader of a control plane in a pod: the real program over TLS, and programs in its place that answer what they
 *  should not. */
import { type ChildProcess, spawn } from 'node:child_process'
import { createHash } from 'node:crypto'
import { once } from 'node:events'
import { mkdtemp, readFile, rm, stat } from 'node:fs/promises'
import type { IncomingMessage, ServerResponse } from 'node:http'
import { createServer } from 'node:https'
import type { AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, afterEach, beforeAll, expect, test } from 'vitest'
import { probePort } from '../../../embedded/kit/ports.ts'
import { PodReader, type PodReaderOptions } from '../../../hosting/pods/reader.ts'
import { openCredentials, openReaderCredentials } from '../../../hosting/core/credentials.ts'
import { takeSnapshot } from '../../../hosting/core/snapshots.ts'
import { type Certificate, makeCertificate } from '../../../kit/sys/certificate.ts'
import { readPair } from '../../../kit/sys/certificate-pair.ts'
import { systemClock } from '../../../kit/sys/clock.ts'
import { nodeBinary } from '../../../kit/sys/process.ts'
import { systemRandom } from '../../../kit/sys/random.ts'

const PROGRAM = join(import.meta.dirname, '../../../hosting/pods/pod/reader.ts')
const parts = { clock: systemClock, random: systemRandom }
/** Nothing is waited for as long as it may take. */
const hasty = {
  ...systemClock,
  after: (milliseconds: number, then: () => void) => systemClock.after(Math.min(milliseconds, 1_000), then),
}
let folder: string
let credentials: Awaited<ReturnType<typeof openReaderCredentials>>
let program: ChildProcess
let address: string
const ends: (() => void)[] = []

beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'svccloud-pod-reader-'))
  await openCredentials({ folder, hosts: [], etcdHosts: ['etcd'], ...parts })
  credentials = await openReaderCredentials({ folder, ...parts })
  const port = await probePort('127.0.0.1', 0)
  address = `https://127.0.0.1:${port}`
  program = spawn(nodeBinary(), [PROGRAM, folder, String(port)], { stdio: ['ignore', 'pipe', 'inherit'] })
  if (program.stdout !== null) await once(program.stdout, 'data')
})
afterEach(() => {
  for (const end of ends.splice(0)) end()
})
afterAll(async () => {
  program.kill('SIGKILL')
  await rm(folder, { recursive: true })
})

type Serve = (request: IncomingMessage, response: ServerResponse) => void

async function serve({ certificate: cert, key }: Certificate, answer: Serve): Promise<string> {
  const server = createServer({ cert, key }, answer)
  await new Promise<void>((resolve) => server.listen({ host: '127.0.0.1', port: 0 }, resolve))
  ends.push(() => {
    server.closeAllConnections()
    server.close()
  })
  return `https://127.0.0.1:${(server.address() as AddressInfo).port}` // it listens on a port
}
async function pair(name: string): Promise<Certificate> {
  const found = await readPair(folder, name)
  if (found === undefined) throw new Error(`there is no ${name}`)
  return found
}

function open(more: Partial<PodReaderOptions> = {}) {
  const replaced: string[] = []
  const options = {
    credentials,
    address: () => address,
    replace: () => void replaced.push('again'),
    clock: systemClock,
  }
  const reader = new PodReader({ ...options, ...more })
  ends.push(() => reader.close())
  return { reader, replaced }
}

const NODES = { items: [{ metadata: { name: 'one', resourceVersion: '1' }, status: {} }] }
const isNode: Serve = (request, response) =>
  void response.end(request.url?.startsWith('/api/v1/nodes') ? JSON.stringify(NODES) : 'ok')

test('what an API server answers is what is answered, and what is refused is refused', async () => {
  const api = await serve(await pair('apiserver'), isNode)
  const { reader, replaced } = open()
  expect(await reader.ask('look', { apis: [api, null], members: [] })).toEqual({ apis: [true, false], members: [] })
  expect(await reader.ask('nodes', api)).toMatchObject([{ name: 'one' }])
  expect(await reader.ask('removeNode', api, 'one')).toBeUndefined()
  const object = { apiVersion: 'v1', kind: 'Pod', metadata: { name: 'a', namespace: 'b' } }
  await expect(reader.ask('setAgent', api, [object])).rejects.toMatchObject({ reason: 'state_not_allowed' })
  await expect(reader.ask('nodes', 'https://127.0.0.1:1')).rejects.toThrow('ECONNREFUSED')
  // An API server that cannot be reached is no fault of its.
  expect(replaced).toEqual([])
})

test.each<[string, () => Promise<Certificate>]>([
  ["the cluster's authority", () => pair('admin')],
  ["etcd's", () => pair('etcd-client')],
  [
    'another one',
    async () => {
      const common = { days: 1, now: new Date(), random: systemRandom }
      const authority = await makeCertificate({ ...common, commonName: 'svccloud-reader-ca', isAuthority: true })
      return makeCertificate({ ...common, commonName: 'svccloud:host', isClient: true, authority })
    },
  ],
])('it answers nobody with a certificate of %s', async (_what, certificate) => {
  const { reader } = open({ credentials: { ...credentials, client: await certificate() } })
  await expect(reader.ask('look', { apis: [], members: [] })).rejects.toThrow()
  expect(await open().reader.ask('look', { apis: [], members: [] })).toEqual({ apis: [], members: [] })
})

test('its certificate is its own: nobody is believed with one of the cluster', async () => {
  const authority = await pair('ca')
  const common = { days: 1, now: new Date(), random: systemRandom }
  const other = await makeCertificate({ ...common, commonName: 'reader', hosts: ['reader'], authority })
  const asked: string[] = []
  const liar = await serve(other, (request) => void asked.push(request.url ?? ''))
  await expect(open({ address: () => liar }).reader.ask('look', { apis: [], members: [] })).rejects.toThrow()
  expect(asked).toEqual([])
})

/** What is said to the first question. */
const saying =
  (said: unknown, status = 200): Serve =>
  (_request, response) =>
    void response.writeHead(status).end(typeof said === 'string' ? said : JSON.stringify(said))
const endless: Serve = (_request, response) => {
  const more = () => {
    while (response.write('x'.repeat(65_536)));
    response.once('drain', more)
  }
  more()
}
const SENSELESS = 'what cannot be meant'
const LIARS: readonly (readonly [what: string, answer: Serve, why: string])[] = [
  ['another shape', saying({ id: 0, value: [{ name: 1 }] }), SENSELESS],
  ['garbage', saying('no JSON'), SENSELESS],
  ['what nobody asked', saying({ id: 7 }), SENSELESS],
  ['a refusal of its own', saying('', 500), SENSELESS],
  ['more than there can be', endless, SENSELESS],
  ['nothing', () => {}, 'silent for too long'],
]

test.each(LIARS)('one that says %s has to be replaced, once', async (_what, answer, why) => {
  const liar = await serve(credentials.server, answer)
  const { reader, replaced } = open({ address: () => liar, clock: why === SENSELESS ? systemClock : hasty })
  await expect(reader.ask('nodes', 'https://127.0.0.1:1')).rejects.toThrow(why)
  expect(replaced).toEqual(['again'])
})

test('what else was asked of one that is believed no longer is no further lie', async () => {
  const waiting: (() => void)[] = []
  const liar = await serve(credentials.server, (_request, response) => {
    waiting.push(() => void response.end('no JSON'))
    if (waiting.length === 3) for (const answer of waiting) answer()
  })
  let at: string | undefined = liar
  const replaced: string[] = []
  const replace = () => {
    replaced.push('again')
    at = undefined
  }
  const { reader } = open({ address: () => at, replace })
  const asked = [1, 2, 3].map(() => reader.ask('nodes', 'https://127.0.0.1:1'))
  for (const result of await Promise.allSettled(asked)) expect(String(Object(result).reason)).toContain(SENSELESS)
  expect(replaced).toEqual(['again'])
  await expect(reader.ask('nodes', 'https://127.0.0.1:1')).rejects.toThrow('being started')
})

test('one that is not there, or ends, has told no lie', async () => {
  const ending = await serve(credentials.server, (request) => void request.socket.destroy())
  for (const at of [ending, 'https://127.0.0.1:1', undefined]) {
    const { reader, replaced } = open({ address: () => at })
    await expect(reader.ask('nodes', 'https://127.0.0.1:1')).rejects.toThrow()
    expect(replaced).toEqual([])
  }
})

const CONTENT = Buffer.alloc(3_000_000, 'what etcd holds')
const WHOLE = Buffer.concat([CONTENT, createHash('sha256').update(CONTENT).digest()])
const lineOf = (bytes: Uint8Array) => `${JSON.stringify({ result: { blob: Buffer.from(bytes).toString('base64') } })}\n`
const STEP = 100_000
function* linesOf(bytes: Buffer) {
  for (let at = 0; at < bytes.length; at += STEP) yield lineOf(bytes.subarray(at, at + STEP))
}

test('a snapshot streams through it, and half of one is none', async () => {
  let bytes = WHOLE
  const etcd = await serve(await pair('etcd'), (_request, response) => {
    for (const line of linesOf(bytes)) response.write(line)
    if (bytes === WHOLE) response.end()
    else response.destroy()
  })
  const { reader } = open()
  const take = (id: string) => takeSnapshot({ folder, id, etcdutl: undefined, parts: reader.snapshotParts(etcd) })
  expect(await take('whole')).toEqual({
    sizeBytes: WHOLE.length,
    sha256: createHash('sha256').update(WHOLE).digest('hex'),
  })
  expect((await readFile(join(folder, 'whole.db'))).equals(WHOLE)).toBe(true)
  bytes = WHOLE.subarray(0, 1_000_000)
  await expect(take('half')).rejects.toThrow()
  for (const name of ['half.db', 'half.db.partial']) await expect(stat(join(folder, name))).rejects.toThrow('ENOENT')
})

test('a snapshot that a reader made up is none', async () => {
  const liar = await serve(credentials.server, saying('what etcd never held'.repeat(1_000)))
  const { reader } = open({ address: () => liar })
  const made = takeSnapshot({ folder, id: 'made', etcdutl: undefined, parts: reader.snapshotParts('https://etcd') })
  await expect(made).rejects.toThrow('not whole')
})
