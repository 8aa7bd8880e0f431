/** The door before engines and stores, some of which answer without reading what they were sent. */
import { once } from 'node:events'
import { mkdtemp, rm } from 'node:fs/promises'
import { createServer as createHttpServer, type IncomingMessage } from 'node:http'
import { Agent, request as httpsRequest } from 'node:https'
import { type AddressInfo, createServer, type Socket } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { createServer as createSecureServer } from 'node:tls'
import { expect, onTestFinished, test } from 'vitest'
import { startDoor } from '../../../embedded/object-storage/door.ts'
import { openDoorMetrics } from '../../../embedded/object-storage/metrics.ts'
import { openCertificates } from '../../../embedded/kubernetes/server/certificates.ts'
import { systemClock } from '../../../kit/sys/clock.ts'
import { silentLog } from '../../../kit/sys/log.ts'
import { openRegistry } from '../../../kit/sys/metrics.ts'
import { systemRandom } from '../../../kit/sys/random.ts'

const signedBy = (key: string): string =>
  `AWS4-HMAC-SHA256 Credential=${key}/20260101/us-east-1/s3/aws4_request,SignedHeaders=host,Signature=00`

/** Answers when it has read the body: 403 for keys that say so. Says by which connection each request came. */
async function openEngine(socketPath: string) {
  const came: string[] = []
  const connections: unknown[] = []
  const server = createHttpServer((request, response) => {
    if (!connections.includes(request.socket)) connections.push(request.socket)
    came.push(`${request.method} by ${connections.indexOf(request.socket)}`)
    request.resume().once('end', () => response.writeHead(request.url?.includes('refused') ? 403 : 200).end())
  })
  server.listen(socketPath)
  await once(server, 'listening')
  onTestFinished(() => void server.close().closeAllConnections())
  return came
}

/** Refuses what it has read the beginning of, and closes: the rest lies unread. */
const answerHastily = (socket: Socket): void => {
  socket.on('error', () => {})
  socket.once('data', () => {
    socket.pause()
    const body = '<Error><Code>ExistingObjectIsDirectory</Code></Error>'
    socket.write(`HTTP/1.1 409 Conflict\r\nContent-Length: ${body.length}\r\n\r\n${body}`, () => socket.destroy())
  })
}

async function openHastyEngine(socketPath: string) {
  const server = createServer(answerHastily)
  server.listen(socketPath)
  await once(server, 'listening')
  onTestFinished(() => void server.close())
  return []
}

const TENANT = {
  ...{ id: 'ada', bucketPrefix: 'one-', quotaBytes: 1e9, active: 0, writing: 0 },
  usage: {
    measured: { at: new Date(), buckets: 1 },
    bytes: () => 0,
    reserve: () => () => {},
    measure: async () => {},
  },
}

interface Sent {
  readonly method: string
  readonly body: string | Uint8Array
  readonly key?: string
  readonly path?: string
  readonly headers?: Readonly<Record<string, string>>
  readonly signal?: AbortSignal
}

/** Is measured when the test says so, and notes what is done with its room. */
function newUnmeasured() {
  const { promise, resolve } = Promise.withResolvers<void>()
  const notes: string[] = []
  const usage = {
    ...TENANT.usage,
    measured: undefined,
    measure: () => {
      notes.push('asked')
      return promise
    },
    reserve: () => {
      notes.push('taken')
      return () => void notes.push('given back')
    },
  }
  return { tenant: { ...TENANT, id: 'eve', usage }, notes, measured: resolve }
}

async function openDoor(openIts: (socketPath: string) => Promise<string[]> = openEngine, isMoved = false) {
  const folder = await mkdtemp(join(tmpdir(), 'door-'))
  onTestFinished(() => rm(folder, { recursive: true }))
  const parts = { clock: systemClock, random: systemRandom, log: silentLog }
  const certificates = await openCertificates({ ...parts, folder, hosts: ['localhost'] })
  const came = await openIts(join(folder, 's3'))
  const upstream = isMoved ? { upstream: await openHastyStore(certificates) } : {}
  const unmeasured = newUnmeasured()
  const known = {
    ...{ KEY1: { ...TENANT, ...upstream }, KEY2: { ...TENANT, ...upstream, id: 'bob' } },
    KEY3: unmeasured.tenant,
  }
  const tenants = {
    byKey: (key: keyof typeof known) => known[key],
    find: (id: string) => Object.values(known).find((tenant) => tenant.id === id),
    list: () => Object.values(known),
  }
  const door = await startDoor({
    ...parts,
    ...{ host: '127.0.0.1', port: 0, socketPath: join(folder, 's3'), sizeOf: async () => 0 },
    certificate: certificates.certificate,
    key: certificates.key,
    tenants: tenants as never, // what requests look at
    metrics: openDoorMetrics(openRegistry({ isProcessWide: false }), {
      tenants: tenants as never,
      isEngineUp: async () => true,
    }),
  })
  onTestFinished(() => door.stop())
  const agent = new Agent({ ca: certificates.authority, keepAlive: true })
  onTestFinished(() => agent.destroy())
  const send = async ({ method, body, key = 'KEY1', path = '/one-b/a', headers = {}, signal }: Sent) => {
    const length = body.length === 0 ? {} : { 'content-length': body.length }
    const request = httpsRequest({
      ...{ agent, host: 'localhost', port: door.port, method, path, ...(signal && { signal }) },
      headers: { authorization: signedBy(key), ...length, ...headers },
    })
    request.on('error', () => {}) // of the rest of a body that nobody reads
    request.end(body)
    const [answer] = await once(request, 'response')
    answer.resume()
    await once(answer, 'end')
    return answer.statusCode as number // of Node's response
  }
  const read = async (path: string): Promise<Buffer> => {
    const headers = { authorization: signedBy('KEY1') }
    const request = httpsRequest({ agent, host: 'localhost', port: door.port, path, headers }).end()
    const [answer] = (await once(request, 'response')) as [IncomingMessage]
    const chunks: Buffer[] = []
    for await (const chunk of answer) {
      chunks.push(chunk as Buffer) // without an encoding it is one
      if (chunks.length % 50 === 0) await sleep(1)
    }
    return Buffer.concat(chunks)
  }
  return { send, read, came, unmeasured }
}

/** A store that a tenant has moved to. */
async function openHastyStore({ certificate, key, authority }: Awaited<ReturnType<typeof openCertificates>>) {
  const server = createSecureServer({ cert: certificate, key }, answerHastily)
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  onTestFinished(() => void server.close())
  return { url: `https://localhost:${(server.address() as AddressInfo).port}`, authority, isSourceKept: true }
}

const LARGE = 'x'.repeat(100_000)

test('a connection that has carried a body goes on only behind one that was read, and with its tenant', async () => {
  const { send, came } = await openDoor()
  const put = { method: 'PUT', body: 'x' }
  for (const [sent, by] of [
    [put, 0],
    [{ ...put, body: LARGE }, 0],
    [{ ...put, path: '/one-b/a?partNumber=1&uploadId=u&x-id=UploadPart' }, 0],
    [{ ...put, key: 'KEY2' }, 1],
    [{ method: 'GET', body: '' }, 2],
    [put, 0],
    [{ method: 'GET', body: '' }, 2],
    [{ method: 'DELETE', body: 'x' }, 0],
    [{ ...put, path: '/one-b/a?tagging' }, 3],
    [{ ...put, headers: { 'x-amz-content-sha256': 'STREAMING-X', 'content-encoding': 'aws-chunked' } }, 4],
    [{ ...put, path: '/one-b/refused' }, 5],
    [{ ...put, body: LARGE, path: '/one-b/refused' }, 6],
    [put, 7],
    [{ ...put, key: 'KEY2', body: LARGE }, 1],
    [put, 7],
  ] as const) {
    expect(await send(sent)).toBe('path' in sent && sent.path.includes('refused') ? 403 : 200)
    expect(came.at(-1)).toBe(`${sent.method} by ${by}`)
  }
})

test('what the engine says before it has read the body comes through', async () => {
  const { send } = await openDoor(openHastyEngine)
  for (const bytes of [1, 300_000, 20_000_000])
    expect(await send({ method: 'PUT', body: 'x'.repeat(bytes) }), `${bytes} bytes`).toBe(409)
})

test('and so does what a store with TLS says that a tenant has moved to', async () => {
  const { send } = await openDoor(openHastyEngine, true)
  for (let turn = 0; turn < 5; turn += 1) {
    const bytes = [1, 300_000, 300_000, 300_000, 2_000_000, 20_000_000]
    const answers = await Promise.all(bytes.map((count) => send({ method: 'PUT', body: 'x'.repeat(count) })))
    expect(answers).toEqual(bytes.map(() => 409))
  }
})

/** Keeps what it is sent, which it reads slowly, and answers it. */
async function openSlowEngine(socketPath: string) {
  let kept: Buffer[] = []
  const server = createHttpServer(async (request, response) => {
    if (request.method === 'GET') return void response.end(Buffer.concat(kept))
    kept = []
    for await (const chunk of request) {
      kept.push(Buffer.from(chunk as Buffer)) // without an encoding it is one
      if (kept.length % 50 === 0) await sleep(1)
    }
    response.end()
  })
  server.listen(socketPath)
  await once(server, 'listening')
  onTestFinished(() => void server.close().closeAllConnections())
  return []
}

test('a large object comes whole to a slow engine, and from it to a slow client', async () => {
  const { send, read } = await openDoor(openSlowEngine)
  const body = systemRandom.bytes(20_000_000)
  expect(await send({ method: 'PUT', body })).toBe(200)
  expect(Buffer.compare(await read('/one-b/a'), body)).toBe(0)
})

test('a client that goes while room is looked for leaves none taken', async () => {
  const { send, came, unmeasured } = await openDoor()
  const { tenant, notes, measured } = unmeasured
  const gone = new AbortController()
  const sent = send({ method: 'PUT', body: 'x', key: 'KEY3', signal: gone.signal })
  await expect.poll(() => [notes, tenant.active]).toEqual([['asked'], 1])
  gone.abort()
  await expect(sent).rejects.toThrow()
  await expect.poll(() => tenant.active).toBe(0)
  measured()
  await expect.poll(() => notes).toEqual(['asked', 'taken', 'given back'])
  expect(came).toEqual([])
})

/** Takes what comes and says nothing. */
async function openSilentEngine(socketPath: string) {
  const came: string[] = []
  const server = createServer((socket) => {
    socket.on('error', () => {}).once('data', () => came.push('asked'))
    socket.resume().once('close', () => came.push('closed'))
  })
  server.listen(socketPath)
  await once(server, 'listening')
  onTestFinished(() => void server.close())
  return came
}

test.for([
  ['PUT', 'x'],
  ['PUT', LARGE],
  ['GET', ''],
] as const)('a client that breaks off its %s breaks off at the engine', async ([method, body]) => {
  const { send, came } = await openDoor(openSilentEngine)
  const gone = new AbortController()
  const sent = send({ method, body, signal: gone.signal })
  await expect.poll(() => came).toEqual(['asked'])
  gone.abort()
  await expect(sent).rejects.toThrow()
  await expect.poll(() => came).toEqual(['asked', 'closed'])
})
