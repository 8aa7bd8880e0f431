/** The door in front of the engine: decides by what a request claims to be, and hands it through as it came, so that
 *  the signature stays good. It keeps tenants in their own buckets, within their quota and their share of the machine;
 *  who they are, the engine proves. Bodies pass through and are never held. */
import {
  Agent,
  type IncomingMessage,
  request as httpRequest,
  type RequestOptions,
  type ServerResponse,
} from 'node:http'
import { Agent as SecureAgent, createServer, request as httpsRequest, type Server } from 'node:https'
import { isIP, type Socket } from 'node:net'
import { pipeline } from 'node:stream'
import type { Upstream } from '../../kit/object-storage/control.ts'
import type { Clock } from '../../kit/sys/clock.ts'
import type { Logger } from '../../kit/sys/log.ts'
import { newBase62, type Random } from '../../kit/sys/random.ts'
import type { DoorMetrics } from './metrics.ts'
import { accessDenied, readRequest, Refusal, type StorageRequest, wireBytesMaximum } from './request.ts'
import type { Tenant, Tenants } from './tenants.ts'

export interface DoorOptions {
  readonly host: string
  readonly port: number
  /** PEM. */
  readonly certificate: string
  readonly key: string
  /** Of the engine. */
  readonly socketPath: string
  readonly tenants: Tenants
  /** Size of an object of the engine; undefined when it is not there. */
  readonly sizeOf: (path: string) => Promise<number | undefined>
  readonly clock: Clock
  readonly random: Random
  readonly log: Logger
  readonly metrics: DoorMetrics
}

export interface Door {
  readonly port: number
  stop(): Promise<void>
}

const HEADER_BYTES_MAXIMUM = 16 * 1024
const HEADERS_MAXIMUM = 100
const HEADERS_MILLISECONDS = 20_000
/** Without a byte either way. */
const IDLE_MILLISECONDS = 120_000
const CONNECTIONS_MAXIMUM = 4_096
/** What one address, or one tenant, may have at a time. */
const CONNECTIONS_OF_ADDRESS_MAXIMUM = 1_024
const REQUESTS_OF_TENANT_MAXIMUM = 256
const BUCKETS_MAXIMUM = 100
/** Of a refused body, so that the client reads why. */
const DRAIN_BYTES_MAXIMUM = 2 * 1024 * 1024
const DRAIN_MILLISECONDS = 2_000
/** A tenant that deleted something to have room is measured anew, but not for each of its requests. */
const MEASURE_AGAIN_MILLISECONDS = 3_000
const REQUEST_ID_CHARACTERS = 16
/** Of one connection, and not of the request. */
const HOP_HEADERS = [
  'connection',
  'expect',
  'keep-alive',
  'proxy-authorization',
  'proxy-connection',
  'te',
  'transfer-encoding',
  'upgrade',
]

/** Listens once this resolves. */
export async function startDoor(options: DoorOptions): Promise<Door> {
  const agents = new Map<string, Agent>()
  const targetOf = openTargets(options.socketPath, agents)
  const server = createServer({
    cert: options.certificate,
    key: options.key,
    minVersion: 'TLSv1.2',
    maxHeaderSize: HEADER_BYTES_MAXIMUM,
    headersTimeout: HEADERS_MILLISECONDS,
    requestTimeout: 0, // large objects take their time, as long as they go on
    connectionsCheckingInterval: 5_000,
  })
  server.timeout = IDLE_MILLISECONDS
  server.maxHeadersCount = HEADERS_MAXIMUM
  server.maxConnections = CONNECTIONS_MAXIMUM
  boundAddresses(server)
  const serve = (request: IncomingMessage, response: ServerResponse, isWaiting: boolean): void => {
    handle({ ...options, targetOf }, request, response, isWaiting).catch((error: unknown) => {
      if (!(error instanceof Refusal)) options.log.warn('request failed', { error })
      const refusal =
        error instanceof Refusal ? error : new Refusal(503, 'ServiceUnavailable', 'Please try again in a moment.')
      options.metrics.refused(refusal.code)
      void refuse(options, { request, response, isWaiting }, refusal)
    })
  }
  server.on('request', (request, response) => serve(request, response, false))
  server.on('checkContinue', (request, response) => serve(request, response, true))
  await new Promise<void>((resolve, reject) => {
    server.once('error', reject)
    server.listen({ host: options.host, port: options.port }, resolve)
  })
  const address = server.address()
  if (address === null || typeof address === 'string') throw new Error('the door has no port')
  return {
    port: address.port,
    async stop() {
      const closed = new Promise<void>((resolve) => server.close(() => resolve()))
      server.closeAllConnections()
      for (const agent of agents.values()) agent.destroy()
      await closed
    },
  }
}

/** Nobody takes all connections. */
function boundAddresses(server: Server): void {
  const counts = new Map<string, number>()
  server.on('connection', (socket: Socket) => {
    const address = socket.remoteAddress ?? ''
    const count = (counts.get(address) ?? 0) + 1
    counts.set(address, count)
    socket.once('close', () => {
      const left = (counts.get(address) ?? 1) - 1
      if (left === 0) counts.delete(address)
      else counts.set(address, left)
    })
    if (count > CONNECTIONS_OF_ADDRESS_MAXIMUM) socket.destroy()
  })
}

type Parts = DoorOptions & { readonly targetOf: ReturnType<typeof openTargets> }

/** `isWaiting`: the client sends its body when it is told to. Throws the Refusal, and whatever else goes wrong before
 *  the answer has begun. */
async function handle(
  parts: Parts,
  request: IncomingMessage,
  response: ServerResponse,
  isWaiting: boolean,
): Promise<void> {
  const { method = '', url: target = '', rawHeaders } = request
  const asked = readRequest({ method, target, rawHeaders })
  const tenant = parts.tenants.byKey(asked.accessKeyId)
  if (tenant === undefined)
    throw new Refusal(403, 'InvalidAccessKeyId', 'The access key Id you provided does not exist in our records.')
  if (tenant.active >= REQUESTS_OF_TENANT_MAXIMUM) throw slowDown()
  const changes = asked.action === 'read' ? 0 : 1
  // Before anybody asks whether it is frozen: who finds no writes then knows that none is under way.
  tenant.active += 1
  tenant.writing += changes
  response.once('close', () => {
    tenant.active -= 1
    tenant.writing -= changes
  })
  const release = await admit(parts, tenant, asked)
  let isStored = false
  response.once('close', () => release(isStored))
  parts.metrics.admitted(asked.action)
  const bytesMaximum = wireBytesMaximum(asked.bytes)
  await forward(parts, parts.targetOf(tenant.upstream, hasBody(request)), request, response, {
    bytesMaximum: asked.bytes > 0 || request.headers['transfer-encoding'] !== undefined ? bytesMaximum : undefined,
    begin: () => {
      if (isWaiting) response.writeContinue()
    },
    answered: (status) => {
      isStored = status < 300
      parts.metrics.answered(status)
    },
  })
}

const hasBody = ({ headers }: IncomingMessage): boolean =>
  headers['transfer-encoding'] !== undefined || Number(headers['content-length'] ?? 0) !== 0

const slowDown = () => new Refusal(503, 'SlowDown', 'Please reduce your request rate.')

/** Answers what gives the room back that was taken. Throws the Refusal. Nothing tells whether another tenant's bucket
 *  is there. */
async function admit(
  { tenants, clock, sizeOf }: Parts,
  { id, usage }: Tenant,
  asked: StorageRequest,
): Promise<(isStored: boolean) => void> {
  const { action, bucket, hasKey, copy } = asked
  const own = tenants.find(id)
  if (own === undefined) throw accessDenied()
  if (bucket === undefined && action !== 'read') throw accessDenied()
  // Where it has moved to, no bucket is another's.
  const isHere = own.upstream === undefined
  for (const name of isHere ? [bucket, copy?.bucket] : [])
    if (name !== undefined && !name.startsWith(own.bucketPrefix)) throw accessDenied()
  if (own.isFrozen && action !== 'read') throw slowDown()
  if (action !== 'write') return () => {}
  if (own.isSuspended)
    throw new Refusal(403, 'AccountProblem', 'The account is suspended: what is stored can be read and deleted.')
  if (!isHere) return () => {} // the quota is held where the bytes are
  if (usage.measured === undefined) await usage.measure()
  if (bucket !== undefined && !hasKey && (usage.measured?.buckets ?? 0) >= BUCKETS_MAXIMUM)
    throw new Refusal(400, 'TooManyBuckets', 'You have attempted to create more buckets than allowed.')
  const bytes = copy === undefined ? asked.bytes : (copy.bytes ?? (await sizeOf(copy.path)))
  if (bytes === undefined) throw new Refusal(404, 'NoSuchKey', 'The specified key does not exist.')
  const isTooMuch = () => bytes > 0 && usage.bytes() + bytes > own.quotaBytes
  const { at } = usage.measured ?? {}
  const isOld = at === undefined || clock.now().getTime() - at.getTime() > MEASURE_AGAIN_MILLISECONDS
  if (isTooMuch() && isOld) await usage.measure()
  if (isTooMuch()) throw new Refusal(403, 'QuotaExceeded', `The quota is ${own.quotaBytes} bytes.`)
  return usage.reserve(bytes)
}

/** Where requests go. */
interface Target {
  readonly send: typeof httpRequest
  readonly options: RequestOptions
}

/** What an engine has left of a body would be the beginning of the next request, of whoever that is: a connection that
 *  carried a body is never used again. */
class OnceAgent extends Agent {
  override keepSocketAlive(): boolean {
    return false
  }
}
class SecureOnceAgent extends SecureAgent {
  override keepSocketAlive(): boolean {
    return false
  }
}

function newAgent(hasBody: boolean, isSecure: boolean, authority: string | null | undefined): Agent {
  // Nobody waits for a connection: that would be one which has carried a body.
  if (hasBody && !isSecure) return new OnceAgent({ keepAlive: true })
  const ca = authority ? { ca: authority } : {}
  if (hasBody) return new SecureOnceAgent({ keepAlive: true, ...ca })
  const kept = { keepAlive: true, maxSockets: CONNECTIONS_MAXIMUM, maxFreeSockets: 64 }
  return isSecure ? new SecureAgent({ ...kept, ...ca }) : new Agent(kept)
}

/** The engine, or the store that a tenant has moved to. */
const openTargets =
  (socketPath: string, agents: Map<string, Agent>) =>
  (upstream: Upstream | undefined, hasBody: boolean): Target => {
    const url = upstream && new URL(upstream.url)
    const isSecure = url?.protocol === 'https:'
    const ca = isSecure ? upstream?.authority : null
    const name = JSON.stringify([url?.origin, ca, hasBody])
    const agent = agents.get(name) ?? newAgent(hasBody, isSecure, ca)
    agents.set(name, agent)
    if (url === undefined) return { send: httpRequest, options: { agent, socketPath } }
    const { hostname, port } = url
    const host = hostname.replaceAll(/[[\]]/g, '')
    // The name in the request stays that of the door, for its signature; the certificate is that of the store.
    const servername = isSecure && isIP(host) === 0 ? { servername: host } : {}
    const options = { agent, host, ...(port !== '' && { port }), ...servername }
    return { send: isSecure ? httpsRequest : httpRequest, options }
  }

interface Progress {
  /** Of the body; a client that sends more has said less than the truth. Undefined where the quota does not count
   *  it. */
  readonly bytesMaximum: number | undefined
  /** The engine is there and waits for the body. */
  readonly begin: () => void
  readonly answered: (status: number) => void
}

/** Hands the request to the engine and its answer back. Throws while nothing has been answered; later the connection
 *  breaks, which no client takes for an end. */
function forward(
  { metrics }: Parts,
  { send, options }: Target,
  request: IncomingMessage,
  response: ServerResponse,
  { bytesMaximum = Number.POSITIVE_INFINITY, begin, answered }: Progress,
): Promise<void> {
  return new Promise((resolve, reject) => {
    const upstream = send({
      ...options,
      method: request.method ?? '',
      path: request.url ?? '',
      headers: withoutHops(request.rawHeaders),
      timeout: IDLE_MILLISECONDS,
    })
    const fail = (error: Error): void => {
      upstream.destroy()
      if (response.headersSent) response.destroy()
      reject(error)
    }
    upstream.once('timeout', () => fail(new Error('the engine does not answer')))
    upstream.once('error', fail)
    upstream.once('response', (answer) => {
      const { statusCode = 502, statusMessage = '' } = answer
      answered(statusCode)
      // An answer before the end of the body is the last one on its connection.
      const isEarly = !request.complete
      response.writeHead(statusCode, statusMessage, [
        ...withoutHops(answer.rawHeaders),
        ...(isEarly ? ['Connection', 'close'] : []),
      ])
      answer.on('data', (chunk: Buffer) => metrics.sent(chunk.length))
      pipeline(answer, response, (error) => (error ? fail(error) : resolve()))
    })
    response.once('close', () => {
      if (!response.writableFinished) upstream.destroy()
    })
    let received = 0
    request.on('data', (chunk: Buffer) => {
      metrics.received(chunk.length)
      received += chunk.length
      if (received > bytesMaximum) fail(new Refusal(400, 'IncompleteBody', 'The body is longer than announced.'))
    })
    begin()
    pipeline(request, upstream, (error) => {
      if (error && !response.headersSent) fail(error)
    })
  })
}

function withoutHops(rawHeaders: readonly string[]): string[] {
  const kept: string[] = []
  for (let index = 0; index + 1 < rawHeaders.length; index += 2) {
    const [name = '', value = ''] = [rawHeaders[index], rawHeaders[index + 1]]
    if (!HOP_HEADERS.includes(name.toLowerCase())) kept.push(name, value)
  }
  return kept
}

const ESCAPES: Readonly<Record<string, string>> = { '<': '&lt;', '>': '&gt;', '&': '&amp;', '"': '&quot;' }

/** Answers in S3's form. What the client still sends is read to a bound first, so that it hears the answer. */
async function refuse(
  { clock, random }: Pick<DoorOptions, 'clock' | 'random'>,
  exchange: { readonly request: IncomingMessage; readonly response: ServerResponse; readonly isWaiting: boolean },
  { status, code, message }: Refusal,
): Promise<void> {
  const { request, response, isWaiting } = exchange
  if (response.headersSent || response.destroyed) return void response.destroy()
  if (!isWaiting) await drain(request, clock)
  const id = newBase62(random, REQUEST_ID_CHARACTERS)
  const text = message.replace(/[<>&"]/g, (sign) => ESCAPES[sign] ?? '')
  const body =
    '<?xml version="1.0" encoding="UTF-8"?>\n' +
    `<Error><Code>${code}</Code><Message>${text}</Message><RequestId>${id}</RequestId></Error>`
  response.writeHead(status, {
    'content-type': 'application/xml',
    'content-length': Buffer.byteLength(body),
    'x-amz-request-id': id,
    ...(status === 503 ? { 'retry-after': '1' } : {}),
    ...(request.complete ? {} : { connection: 'close' }),
  })
  response.end(request.method === 'HEAD' ? undefined : body)
}

function drain(request: IncomingMessage, clock: Clock): Promise<void> {
  if (request.complete || request.destroyed) return Promise.resolve()
  return new Promise((resolve) => {
    let bytes = 0
    const cancel = clock.after(DRAIN_MILLISECONDS, resolve)
    const done = () => {
      cancel()
      resolve()
    }
    request.once('end', done).once('close', done).once('error', done)
    request.on('data', (chunk: Buffer) => {
      bytes += chunk.length
      if (bytes > DRAIN_BYTES_MAXIMUM) done()
    })
  })
}
