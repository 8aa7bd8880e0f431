/** The API server's side of the console protocol against the agent's own listener, over TLS. */
import { mkdtemp } from 'node:fs/promises'
import type { ServerResponse } from 'node:http'
import { createServer } from 'node:https'
import type { AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, expect, test } from 'vitest'
import type { ConsoleEvent, GuestConsole } from '../../../agents/node/drivers/hypervisor/hypervisor.ts'
import { type AgentCertificate, openCertificate } from '../../../agents/node/serve/certificate.ts'
import { type Listener, startListener } from '../../../agents/node/serve/listener.ts'
import { openAgents } from '../../../apiserver/console/agents.ts'
import type { ConsoleLine } from '../../../apiserver/console/console.ts'
import type { AgentConnections } from '../../../apiserver/console/consoles.ts'
import { Cache } from '../../../kit/kube/cache.ts'
import type { Caches } from '../../../kit/kube/caches.ts'
import type { Store } from '../../../kit/kube/store.ts'
import { systemClock } from '../../../kit/sys/clock.ts'
import { silentLog } from '../../../kit/sys/log.ts'
import { systemRandom } from '../../../kit/sys/random.ts'
import { Node } from '../../../resources/node/index.ts'

const INSTANCE = '0b7f7a5c-5a0e-4a53-9b62-2f9d4c1a7b11'
const guest = {
  isRunning: true,
  end: 5,
  isConnected: true,
  typed: [] as string[],
  listeners: new Set<(event: ConsoleEvent) => void>(),
}
const console: GuestConsole = {
  tail: () => Buffer.from('boot\n'),
  position: () => ({ log: 'a', end: guest.end }),
  status: () => ({ isConnected: guest.isConnected, isRunning: guest.isRunning, incarnation: 1 }),
  write(bytes) {
    if (guest.isConnected) guest.typed.push(bytes.toString())
    return guest.isConnected
  },
  subscribe(listener) {
    guest.listeners.add(listener)
    return () => guest.listeners.delete(listener)
  },
}
let listener: Listener
let asked = 0
let fingerprint = ''
let pinnedCertificate: AgentCertificate

beforeAll(async () => {
  const certificate = await openCertificate(await mkdtemp(join(tmpdir(), 'svccloud-agent-')), systemClock, systemRandom)
  fingerprint = certificate.fingerprint
  pinnedCertificate = certificate
  listener = await startListener({
    host: '127.0.0.1',
    port: 0,
    certificate,
    clock: systemClock,
    log: silentLog,
    consoleOf: (name) => (name === INSTANCE ? console : undefined),
    usage: async () => [],
    isAuthorized: async (authorization) => {
      asked++
      return authorization === 'Bearer good'
    },
  })
})
afterAll(() => listener.stop())

/** A host in an attacker's hands: it has the pinned certificate and answers as it likes. */
async function hostileHost(answer: (response: ServerResponse) => void): Promise<AsyncDisposable & { url: string }> {
  const { certificate, key } = pinnedCertificate
  const server = createServer({ cert: certificate, key }, (request, response) => {
    request.resume()
    answer(response)
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  const { port } = server.address() as AddressInfo // a listening TCP server has one
  return {
    url: `https://127.0.0.1:${port}`,
    async [Symbol.asyncDispose]() {
      server.closeAllConnections()
      await new Promise((resolve) => server.close(resolve))
    },
  }
}
const pour = (response: ServerResponse, bytes: Buffer): void => {
  const write = (): void => {
    while (!response.destroyed && response.write(bytes));
  }
  response.on('drain', write).on('error', () => {})
  write()
}
const collect = async <T>(items: AsyncIterable<T>): Promise<T[]> => {
  const all: T[] = []
  for await (const item of items) all.push(item)
  return all
}
const linesOf = async (url: string): Promise<ConsoleLine[]> =>
  collect(connect({ url }).follow('n1', INSTANCE, new AbortController().signal))

function connect(
  options: { readonly token?: string; readonly fingerprint?: string; readonly url?: string } = {},
): AgentConnections {
  const nodes = new Cache(Node, (error) => {
    throw error
  })
  const endpoint = { url: options.url ?? listener.url, certificateFingerprint: options.fingerprint ?? fingerprint }
  nodes.takeList({
    resourceVersion: '2',
    items: [
      {
        apiVersion: 'svccloud.dev/v1alpha1',
        kind: 'Node',
        metadata: { name: 'n1', resourceVersion: '1' },
        spec: {
          zone: 'z',
          rack: 'r',
          roles: ['compute'],
          isCordoned: false,
          cpuOvercommit: 1,
          reservedMemoryMebibytes: 0,
        },
        status: { endpoint },
      },
    ],
  })
  const token = Buffer.from(options.token ?? 'good').toString('base64')
  // The two things that are asked of them here.
  const store = { get: async () => ({ data: { token } }) } as unknown as Store
  return openAgents({ store, caches: { of: () => nodes } as unknown as Caches, clock: systemClock })
}

test('follows tail, status and output, and leaves when asked', async () => {
  const stop = new AbortController()
  const lines: ConsoleLine[] = []
  const following = (async () => {
    for await (const line of connect().follow('n1', INSTANCE, stop.signal)) lines.push(line)
  })()
  await expect.poll(() => lines.length).toBe(2)
  guest.end += 7
  for (const listen of guest.listeners) listen({ type: 'output', bytes: Buffer.from('login: ') })
  await expect.poll(() => lines.length).toBe(3)
  expect(lines).toMatchObject([
    { type: 'tail', data: Buffer.from('boot\n').toString('base64'), log: 'a', end: 5 },
    { type: 'status', connected: true, running: true },
    { type: 'output', data: Buffer.from('login: ').toString('base64'), log: 'a', end: 12 },
  ])
  stop.abort()
  await following.catch(() => {})
  await expect.poll(() => guest.listeners.size).toBe(0)
})

test('what is typed arrives in the order in which it came', async () => {
  const agents = connect()
  guest.typed = []
  const texts = Array.from({ length: 40 }, (_none, index) => `${index} `)
  expect(new Set(await Promise.all(texts.map((text) => agents.write('n1', INSTANCE, Buffer.from(text)))))).toEqual(
    new Set(['written']),
  )
  expect(guest.typed).toEqual(texts)
})

test('a stopped guest, an unknown one, a detached serial port and a silent host are distinguished', async () => {
  const agents = connect()
  guest.isRunning = false
  expect(await agents.write('n1', INSTANCE, Buffer.from('x'))).toBe('stopped')
  guest.isRunning = true
  guest.isConnected = false
  expect(await agents.write('n1', INSTANCE, Buffer.from('x'))).toBe('unreachable')
  guest.isConnected = true
  expect(await agents.write('n1', 'another', Buffer.from('x'))).toBe('stopped')
  expect(await agents.write('n2', INSTANCE, Buffer.from('x'))).toBe('unreachable')
  expect(await connect({ url: 'https://127.0.0.1:1' }).write('n1', INSTANCE, Buffer.from('x'))).toBe('unreachable')
  expect(await connect({ token: 'bad' }).write('n1', INSTANCE, Buffer.from('x'))).toBe('unreachable')
})

test('another certificate never receives the token', async () => {
  const before = asked
  const agents = connect({ fingerprint: '0'.repeat(64) })
  expect(await agents.write('n1', INSTANCE, Buffer.from('x'))).toBe('unreachable')
  await expect(async () => {
    for await (const _line of agents.follow('n1', INSTANCE, new AbortController().signal));
  }).rejects.toThrow('pinned')
  expect(asked).toBe(before)
})

test('a host that sends a line without an end, or one of another shape, is given up', async () => {
  await using endless = await hostileHost((response) => pour(response, Buffer.alloc(65_536, 'x')))
  await expect(linesOf(endless.url)).rejects.toThrow('bytes were sent')
  await using other = await hostileHost((response) => response.end('{"type":"output"}\n'))
  await expect(linesOf(other.url)).rejects.toThrow()
})

test('a host whose answer to what is typed has no end is not read on', async () => {
  let isClosed = false
  await using host = await hostileHost((response) => {
    response.once('close', () => (isClosed = true))
    response.writeHead(500)
    pour(response, Buffer.alloc(65_536, 'x'))
  })
  expect(await connect({ url: host.url }).write('n1', INSTANCE, Buffer.from('x'))).toBe('unreachable')
  await expect.poll(() => isClosed).toBe(true)
})
