/** The front end before engines and stores, some of which answer without reading what they were sent. */
import { createHash } from 'node:crypto'
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
import { startFrontEnd } from '../../../embedded/object-storage/front-end.ts'
import { openFrontEndMetrics } from '../../../embedded/object-storage/metrics.ts'
import { openCertificates } from '../../../embedded/kubernetes/server/certificates.ts'
import { signRequest } from '../../../kit/chunks/sign-request.ts'
import { type Clock, systemClock } from '../../../kit/sys/clock.ts'
import { silentLog } from '../../../kit/sys/log.ts'
import { openRegistry } from '../../../kit/sys/metrics.ts'
import { systemRandom } from '../../../kit/sys/random.ts'

const SECRET = 'secret of all'
const PORTAL = 'https://portal.example'

interface Signing {
  readonly method: string
  readonly path: string
  readonly port: number
  readonly key?: string
  readonly secret?: string
  readonly region?: string
  readonly headers?: Readonly<Record<string, string>>
}

/** All headers of a request that is signed with the key, but for that of the host. */
const sign = ({ method, path, port, key = 'KEY1', secret = SECRET, region = 'us-east-1', headers = {} }: Signing) =>
  signRequest(
    { method: method as 'GET', url: new URL(path, `https://localhost:${port}`), headers, isStreamed: true },
    { accessKeyId: key, secretAccessKey: secret, region },
    new Date(),
  )

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
  id: 'ada',
  bucketPrefix: 'one-',
  quotaBytes: 1e9,
  active: 0,
  writing: 0,
  isFrozen: false,
  usage: {
    measured: { at: new Date(), buckets: 1 },
    bytes: () => 0,
    files: () => 0,
    buckets: () => 1,
    reserve: () => () => {},
    measure: async () => {},
  },
}

interface Sent {
  readonly method: string
  readonly body: string | Uint8Array
  readonly key?: string
  readonly secret?: string
  readonly region?: string
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

async function openFrontEnd(
  openIts: (socketPath: string) => Promise<string[]> = openEngine,
  isMoved = false,
  clock: Clock = systemClock,
) {
  const folder = await mkdtemp(join(tmpdir(), 'front-end-'))
  onTestFinished(() => rm(folder, { recursive: true }))
  const parts = { clock: systemClock, random: systemRandom, log: silentLog }
  const certificates = await openCertificates({ ...parts, folder, hosts: ['localhost'] })
  const came = await openIts(join(folder, 's3'))
  const upstream = isMoved ? { upstream: await openHastyStore(certificates) } : {}
  const unmeasured = newUnmeasured()
  const known = {
    KEY1: { ...TENANT, ...upstream },
    KEY2: { ...TENANT, ...upstream, id: 'bob' },
    KEY3: unmeasured.tenant,
    KEY4: { ...TENANT, ...upstream, id: 'kim' },
  }
  const tenants = {
    byKey: (key: keyof typeof known) => known[key],
    find: (id: string) => Object.values(known).find((tenant) => tenant.id === id),
    list: () => Object.values(known),
  }
  const frontEnd = await startFrontEnd({
    ...parts,
    clock,
    host: '127.0.0.1',
    port: 0,
    portalOrigin: PORTAL,
    secretOf: ({ id }) => (id === 'kim' ? undefined : SECRET),
    engines: {
      hold: async () => ({ socketPath: join(folder, 's3'), answered: () => {}, release: () => {} }),
      sizeOf: async () => 0,
    },
    certificate: certificates.certificate,
    key: certificates.key,
    tenants: tenants as never, // what requests look at
    metrics: openFrontEndMetrics(openRegistry({ isProcessWide: false }), {
      tenants: tenants as never,
      engines: { counts: () => ({ live: 0, faulty: 0, starts: 0, failures: 0, healed: 0 }) },
      isolation: { kind: 'process', hasProc: true },
      bounds: 'rlimit',
      unknownBuckets: () => 0,
    }),
  })
  onTestFinished(() => frontEnd.stop())
  const agent = new Agent({ ca: certificates.authority, keepAlive: true })
  onTestFinished(() => agent.destroy())
  const send = async ({ method, body, path = '/one-b/a', headers = {}, signal, ...more }: Sent) => {
    const length = body.length === 0 ? {} : { 'content-length': body.length }
    const request = httpsRequest({
      agent,
      host: 'localhost',
      port: frontEnd.port,
      method,
      path,
      ...(signal && { signal }),
      headers: { ...sign({ method, path, port: frontEnd.port, ...more }), ...length, ...headers },
    })
    request.on('error', () => {}) // of the rest of a body that nobody reads
    request.end(body)
    const [answer] = await once(request, 'response')
    answer.resume()
    await once(answer, 'end')
    return answer.statusCode as number // of Node's response
  }
  const read = async (path: string): Promise<Buffer> => {
    const headers = sign({ method: 'GET', path, port: frontEnd.port })
    const request = httpsRequest({ agent, host: 'localhost', port: frontEnd.port, path, headers }).end()
    const [answer] = (await once(request, 'response')) as [IncomingMessage]
    const chunks: Buffer[] = []
    for await (const chunk of answer) {
      chunks.push(chunk as Buffer) // without an encoding it is one
      if (chunks.length % 50 === 0) await sleep(1)
    }
    return Buffer.concat(chunks)
  }
  return { send, read, came, unmeasured, tenant: known.KEY1, port: frontEnd.port, agent }
}

/** A store that a tenant has moved to. */
async function openHastyStore({ certificate, key, authority }: Awaited<ReturnType<typeof openCertificates>>) {
  const server = createSecureServer({ cert: certificate, key }, answerHastily)
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  onTestFinished(() => void server.close())
  return { url: `https://localhost:${(server.address() as AddressInfo).port}`, authority, isSourceKept: true }
}

const UPLOAD = '0f0f0f0f-1111-2222-3333-444444444444'
const LARGE = 'x'.repeat(100_000)

test('a connection that has carried a body is reused only after one that was read, and by its tenant', async () => {
  const { send, came } = await openFrontEnd()
  const put = { method: 'PUT', body: 'x' }
  for (const [sent, by] of [
    [put, 0],
    [{ ...put, body: LARGE }, 0],
    [{ ...put, path: `/one-b/a?partNumber=1&uploadId=${UPLOAD}&x-id=UploadPart` }, 0],
    [{ ...put, key: 'KEY2' }, 1],
    [{ method: 'GET', body: '' }, 2],
    [put, 0],
    [{ method: 'GET', body: '' }, 2],
    [{ method: 'POST', path: '/one-b?delete=', body: '<Delete><Object><Key>a</Key></Object></Delete>' }, 0],
    [{ ...put, path: '/one-b/a?tagging=', body: '<Tagging><TagSet/></Tagging>' }, 3],
    [{ ...put, headers: { 'content-encoding': 'aws-chunked' } }, 4],
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
  const { send } = await openFrontEnd(openHastyEngine)
  for (const bytes of [1, 300_000, 20_000_000])
    expect(await send({ method: 'PUT', body: 'x'.repeat(bytes) }), `${bytes} bytes`).toBe(409)
})

test('and so does what a store with TLS says that a tenant has moved to', async () => {
  const { send } = await openFrontEnd(openHastyEngine, true)
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
  const { send, read } = await openFrontEnd(openSlowEngine)
  const body = systemRandom.bytes(20_000_000)
  expect(await send({ method: 'PUT', body })).toBe(200)
  expect(Buffer.compare(await read('/one-b/a'), body)).toBe(0)
})

test('a client that goes while room is looked for leaves none taken', async () => {
  const { send, came, unmeasured } = await openFrontEnd()
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
  const { send, came } = await openFrontEnd(openSilentEngine)
  const gone = new AbortController()
  const sent = send({ method, body, signal: gone.signal })
  await expect.poll(() => came).toEqual(['asked'])
  gone.abort()
  await expect(sent).rejects.toThrow()
  await expect.poll(() => came).toEqual(['asked', 'closed'])
})

test('requests that nobody has proven take no place of the tenant, however many', async () => {
  const { send, came, tenant, port, agent } = await openFrontEnd(openSilentEngine)
  // Their bodies never end.
  const held = Array.from({ length: 300 }, (_none, index) => {
    const headers = sign({ method: 'PUT', path: '/one-b/a', port, secret: `guess ${index}` })
    const request = httpsRequest({
      agent,
      host: 'localhost',
      port,
      method: 'PUT',
      path: '/one-b/a',
      headers: { ...headers, 'content-length': 1_000_000 },
    })
    request.on('error', () => {}).write('x')
    return once(request, 'response').then(([answer]) => (answer as IncomingMessage).resume().statusCode)
  })
  expect(await send({ method: 'PUT', body: 'x', secret: 'a guess' })).toBe(403)
  expect([tenant.active, came]).toEqual([0, []])
  const gone = new AbortController()
  const sent = send({ method: 'PUT', body: 'x', signal: gone.signal })
  await expect.poll(() => came).toEqual(['asked'])
  expect(tenant.active).toBe(1)
  gone.abort()
  await expect(sent).rejects.toThrow()
  expect(new Set(await Promise.all(held))).toEqual(new Set([403]))
})

/** Nobody tires of waiting for the rest of a body. */
const PATIENT: Clock = { ...systemClock, after: () => () => {} }

/** Begins an upload of 8 MiB and sends the rest once it has the answer, which says `connection: close`. */
async function beginUpload({ port, agent }: { readonly port: number; readonly agent: Agent }, key = 'KEY1') {
  const of = { method: 'PUT', path: '/one-b/a', port, key }
  const headers = { ...sign(of), 'content-length': 8 * 1024 ** 2 }
  const request = httpsRequest({ agent, host: 'localhost', port, method: of.method, path: of.path, headers })
  request.on('error', () => {}).write('x')
  // While nobody reads the answer, the connection stays as it is.
  const [answer] = (await once(request, 'response')) as [IncomingMessage]
  const finish = async () => {
    request.end('x'.repeat(8 * 1024 ** 2 - 1))
    answer.resume()
    await once(answer, 'end')
  }
  return { status: answer.statusCode, finish }
}

test('a refused upload of a frozen tenant is no open write while its body is still sent', async () => {
  const frontEnd = await openFrontEnd(openEngine, false, PATIENT)
  const { tenant } = frontEnd
  tenant.isFrozen = true
  const { status, finish } = await beginUpload(frontEnd)
  expect([status, tenant.writing, tenant.active]).toEqual([503, 0, 0])
  await finish()
  expect([tenant.writing, tenant.active]).toEqual([0, 0])
})

test('the room of an upload that the engine has refused is free while its body is still sent', async () => {
  const frontEnd = await openFrontEnd(openHastyEngine, false, PATIENT)
  const { tenant, notes, measured } = frontEnd.unmeasured
  measured()
  const { status, finish } = await beginUpload(frontEnd, 'KEY3')
  expect(status).toBe(409)
  await expect.poll(() => notes).toEqual(['asked', 'taken', 'given back'])
  expect([tenant.writing, tenant.active]).toEqual([0, 0])
  await finish()
  expect([notes.length, tenant.writing, tenant.active]).toEqual([3, 0, 0])
})

/** Says what the test wants. */
const openSaying =
  (status: number, headers: Readonly<Record<string, string>>, body: string) => async (socketPath: string) => {
    const server = createHttpServer((request, response) => {
      request.resume().once('end', () => response.writeHead(status, headers).end(body))
    })
    server.listen(socketPath)
    await once(server, 'listening')
    onTestFinished(() => void server.close().closeAllConnections())
    return []
  }

async function answerOf(frontEnd: Awaited<ReturnType<typeof openFrontEnd>>, path: string, method = 'GET') {
  const { port, agent } = frontEnd
  const headers = sign({ method, path, port })
  const request = httpsRequest({ agent, host: 'localhost', port, path, method, headers }).end()
  const [answer] = (await once(request, 'response')) as [IncomingMessage]
  const body = (await answer.toArray()).join('')
  return { status: answer.statusCode, headers: answer.headers, body }
}

test.each([
  ['aws-chunked', undefined],
  ['AWS-Chunked', undefined],
  ['aws-chunked,gzip', 'gzip'],
  ['gzip, aws-chunked', 'gzip'],
  ['gzip', 'gzip'],
])('an object that was sent as %s is read as %s', async (stored, read) => {
  const frontEnd = await openFrontEnd(openSaying(200, { 'content-encoding': stored }, 'x'))
  expect((await answerOf(frontEnd, '/one-b/a')).headers['content-encoding']).toBe(read)
})

test('what the engine could not do is tried again, and is no fault of anybody', async () => {
  const frontEnd = await openFrontEnd(openSaying(500, {}, '<Error><Code>InternalError</Code></Error>'))
  for (const method of ['GET', 'HEAD', 'DELETE']) {
    const { status, headers } = await answerOf(frontEnd, '/one-b/a', method)
    expect([method, status, headers['retry-after']]).toEqual([method, 503, '1'])
  }
  const { send } = frontEnd
  const put = { method: 'PUT', body: 'x' }
  expect(await send({ ...put, headers: { 'x-amz-meta-a': 'b' } })).toBe(503)
  // Trying again would not help.
  expect(await send({ ...put, headers: { 'x-amz-meta-a': 'b'.repeat(2_048) } })).toBe(400)
  expect(await send({ ...put, path: '/one-b?tagging=', body: '<Tagging><TagSet/></Tagging>' })).toBe(400)
})

test('names in a list are escaped for who asks for that', async () => {
  const listOf = (prefix: string, key: string, folder: string, end: string) =>
    [
      `<?xml version="1.0"?>\n<ListBucketResult xmlns="x"><Name>one-b</Name><Prefix>${prefix}</Prefix>`,
      `<Contents><Key>${key}</Key><ETag>&#34;x&#34;</ETag></Contents>`,
      `<CommonPrefixes><Prefix>${folder}</Prefix></CommonPrefixes>`,
      `<NextContinuationToken>a b</NextContinuationToken>${end}</ListBucketResult>`,
    ].join('')
  const xml = listOf('a &amp;/', 'a &amp;/&#x9;ü+', 'a &amp;/b c/', '<EncodingType></EncodingType>')
  const frontEnd = await openFrontEnd(openSaying(200, { 'content-type': 'application/xml' }, xml))
  expect((await answerOf(frontEnd, '/one-b?list-type=2')).body).toBe(xml)
  const { body, headers } = await answerOf(frontEnd, '/one-b?encoding-type=url&list-type=2')
  const end = '<EncodingType>url</EncodingType>'
  expect(body).toBe(listOf('a%20%26/', 'a%20%26/%09%C3%BC%2B', 'a%20%26/b%20c/', end))
  expect(headers['content-length']).toBe(String(Buffer.byteLength(body)))
})

test('a document is read before the engine hears of it', async () => {
  const { send, came } = await openFrontEnd()
  const post = { method: 'POST', path: '/one-b?delete=' }
  const keyed = (key: string) => `<Delete><Object><Key>${key}</Key></Object></Delete>`
  for (const key of ['../two-b/x', '&#46;&#46;/x', '<![CDATA[..]]>', 'a//b', '/a', '.sgwtmp/x', ''])
    expect([key, await send({ ...post, body: keyed(key) })]).toEqual([key, 400])
  const other = { 'content-md5': createHash('md5').update('another').digest('base64') }
  expect(await send({ ...post, body: keyed('a'), headers: other })).toBe(400)
  expect(await send({ ...post, body: keyed('a').padEnd(2 * 1024 * 1024 + 1) })).toBe(400)
  expect(came).toEqual([])
  expect(await send({ ...post, body: keyed('a') })).toBe(200)
  expect(came).toEqual(['POST by 0'])
})

test('of a tenant whose secret is not known here, sixteen requests wait for the proof of the engine', async () => {
  const { send, came } = await openFrontEnd(openSilentEngine)
  const gone = new AbortController()
  const put = { method: 'PUT', body: 'x', key: 'KEY4' }
  const held = Array.from({ length: 16 }, () => send({ ...put, signal: gone.signal }))
  await expect.poll(() => came.length).toBe(16)
  expect(await send(put)).toBe(503)
  gone.abort()
  await Promise.allSettled(held)
  await expect.poll(() => came.filter((what) => what === 'closed').length).toBe(16)
  const last = new AbortController()
  const sent = send({ ...put, signal: last.signal })
  await expect.poll(() => came.filter((what) => what === 'asked').length).toBe(17)
  last.abort()
  await expect(sent).rejects.toThrow()
})

/** Headers of the answer of the front end to a page of that origin. */
async function askedBy(
  origin: string,
  { port, agent }: { readonly port: number; readonly agent: Agent },
  { method, headers = {}, path = '/one-b/a' }: Pick<Signing, 'method' | 'headers'> & { readonly path?: string },
) {
  const request = httpsRequest({ agent, host: 'localhost', port, method, path, headers: { origin, ...headers } }).end()
  const [answer] = (await once(request, 'response')) as [IncomingMessage]
  answer.resume()
  await once(answer, 'end')
  const { 'access-control-allow-origin': allowed, 'access-control-allow-methods': methods } = answer.headers
  return { status: answer.statusCode, allowed, methods }
}

test('pages of the portal may upload, those of others may not, and nobody may do more by a page', async () => {
  const frontEnd = await openFrontEnd()
  const { port } = frontEnd
  const preflight = (method: string) => ({ method: 'OPTIONS', headers: { 'access-control-request-method': method } })
  expect(await askedBy(PORTAL, frontEnd, preflight('PUT'))).toEqual({ status: 204, allowed: PORTAL, methods: 'PUT' })
  const none = { allowed: undefined, methods: undefined }
  for (const [origin, method] of [
    [PORTAL, 'GET'],
    [PORTAL, 'DELETE'],
    [PORTAL, 'POST'],
    ['https://portal.example.evil', 'PUT'],
    ['http://portal.example', 'PUT'],
    ['null', 'PUT'],
  ] as const)
    expect(await askedBy(origin, frontEnd, preflight(method)), `${origin} ${method}`).toEqual({ status: 405, ...none })
  const signed = (method: string) => ({
    method,
    headers: { ...sign({ method, path: '/one-b/a', port }), 'content-length': '0' },
  })
  expect(await askedBy(PORTAL, frontEnd, signed('PUT'))).toEqual({ status: 200, allowed: PORTAL, methods: undefined })
  expect(await askedBy(PORTAL, frontEnd, signed('GET'))).toEqual({ status: 200, ...none })
  expect(await askedBy('https://other.example', frontEnd, signed('PUT'))).toEqual({ status: 200, ...none })
  expect(await askedBy(PORTAL, frontEnd, { method: 'PUT' }), 'the page reads why').toMatchObject({
    status: 403,
    allowed: PORTAL,
  })
})
