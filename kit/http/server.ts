/** The service behind node:http. Slow, oversized and broken clients are disconnected here; the service handles
 *  everything else. */
import { createServer, type IncomingMessage, STATUS_CODES, type Server, type ServerResponse } from 'node:http'
import { listen } from '../sys/listen.ts'
import type { Duplex } from 'node:stream'
import type { Clock } from '../sys/clock.ts'
import type { Logger } from '../sys/log.ts'
import { newUuid, type Random } from '../sys/random.ts'
import { drained } from '../sys/drain.ts'
import type { HttpRequest, HttpResponse, HttpService } from './exchange.ts'
import { API_HEADERS } from './render.ts'

export interface ServerOptions {
  readonly host: string
  /** 0 picks a free port. */
  readonly port: number
  readonly service: HttpService
  /** Answers requests that are not the service's (pages); true when it answered. */
  readonly pages?: (request: IncomingMessage, response: ServerResponse) => boolean
  /** Whether clients use HTTPS, through a proxy: browsers then never try without it. */
  readonly isSecure?: boolean
  readonly clock: Clock
  readonly random: Random
  readonly log: Logger
}

export interface RunningServer {
  readonly port: number
  /** From now on every connection closes after its next answer, so that its client uses another connection, and nothing
   *  is lost when this stops. */
  drain(): void
  /** Accepts no more connections, ends streams, lets running requests finish, and closes the rest after the grace
   *  time. */
  stop(graceMilliseconds: number): Promise<void>
}

const CONNECTIONS_MAXIMUM = 10_000
const HEADER_BYTES_MAXIMUM = 16_384
const HEADERS_MAXIMUM = 100
const HEADERS_TIMEOUT_MILLISECONDS = 10_000
const REQUEST_TIMEOUT_MILLISECONDS = 30_000
/** Their length says nothing, or that of another answer. */
const BODILESS: readonly number[] = [204, 304]
const KEEP_ALIVE_TIMEOUT_MILLISECONDS = 65_000
/** A client that reads nothing of its response for this long is disconnected. */
const IDLE_TIMEOUT_MILLISECONDS = 120_000

/** A year. Other hosts of the domain are not ours, so they are not included. */
const STRICT_TRANSPORT = 'max-age=31536000'

/** Resolves when it listens; rejects with node's error (EADDRINUSE, EACCES) when it cannot. */
export async function startServer(options: ServerOptions): Promise<RunningServer> {
  const stopping = new AbortController()
  let isDraining = false
  const server = createServer({
    maxHeaderSize: HEADER_BYTES_MAXIMUM,
    headersTimeout: HEADERS_TIMEOUT_MILLISECONDS,
    requestTimeout: REQUEST_TIMEOUT_MILLISECONDS,
    keepAliveTimeout: KEEP_ALIVE_TIMEOUT_MILLISECONDS,
    noDelay: true,
    // refused below, as a problem
    requireHostHeader: false,
  })
  server.maxConnections = CONNECTIONS_MAXIMUM
  server.maxHeadersCount = HEADERS_MAXIMUM
  server.setTimeout(IDLE_TIMEOUT_MILLISECONDS)
  server.on('clientError', (error, socket) => refuseBroken(error, socket, options.random))
  server.on('checkExpectation', (_request, response) =>
    refuse(response, options, 417, 'Nothing but 100-continue can be expected.'),
  )
  server.on('request', (request, response) => {
    response.once('finish', () => {
      if (stopping.signal.aborted) request.socket.end()
    })
    if (isDraining) response.setHeader('connection', 'close')
    if (options.isSecure === true) response.setHeader('strict-transport-security', STRICT_TRANSPORT)
    const fault = faultOf(request)
    if (fault !== undefined) return refuse(response, options, 400, fault)
    if (options.pages?.(request, response) === true) return
    handle(request, response, options, stopping.signal).catch((error: unknown) => {
      options.log.error('response failed', { error })
      response.destroy()
    })
  })
  const port = await listen(server, { host: options.host, port: options.port })
  return {
    port,
    drain: () => void (isDraining = true),
    stop: (graceMilliseconds) => stop(server, stopping, graceMilliseconds, options.clock),
  }
}

async function stop(server: Server, stopping: AbortController, graceMilliseconds: number, clock: Clock): Promise<void> {
  const closed = new Promise<void>((resolve) => server.close(() => resolve()))
  stopping.abort('stopping')
  server.closeIdleConnections()
  const grace = new AbortController()
  await Promise.race([closed, clock.sleep(graceMilliseconds, grace.signal)])
  grace.abort()
  server.closeAllConnections()
  await closed
}

async function handle(
  request: IncomingMessage,
  response: ServerResponse,
  { service, clock }: ServerOptions,
  stopping: AbortSignal,
): Promise<void> {
  const incoming = incomingOf(request, response, stopping)
  const answer = await service(incoming)
  if (response.destroyed) return discard(answer)
  // Does not wait for the rest of the client's body: the connection ends with the response.
  if (!request.complete || stopping.aborted) response.setHeader('connection', 'close')
  if (typeof answer.body === 'string' || answer.body instanceof Uint8Array) {
    const headers = BODILESS.includes(answer.status)
      ? answer.headers
      : { ...answer.headers, 'content-length': String(Buffer.byteLength(answer.body)) }
    response.writeHead(answer.status, headers as Record<string, string | string[]>) // node:http only reads the lists
    response.end(answer.body)
    return
  }
  response.writeHead(answer.status, answer.headers as Record<string, string | string[]>) // as above
  response.flushHeaders()
  if (request.method === 'HEAD') {
    response.end()
    return discard(answer)
  }
  request.socket.setTimeout(0)
  await pour(answer.body, response, clock)
}

function incomingOf(request: IncomingMessage, response: ServerResponse, stopping: AbortSignal): HttpRequest {
  let signal: AbortSignal | undefined
  const hasBody = request.headers['content-length'] !== undefined || request.headers['transfer-encoding'] !== undefined
  return {
    method: request.method ?? '',
    target: request.url ?? '/',
    headers: request.headers,
    remoteAddress: request.socket.remoteAddress ?? '',
    ...(hasBody ? { body: request } : {}),
    get signal() {
      return (signal ??= AbortSignal.any([stopping, goneSignal(response)]))
    },
  }
}

function goneSignal(response: ServerResponse): AbortSignal {
  const disconnect = new AbortController()
  if (response.destroyed) disconnect.abort('client gone')
  else response.once('close', () => disconnect.abort('client gone'))
  return disconnect.signal
}

/** Writes chunks as they arrive and waits while the client is slower. Ends the stream when the client disconnects, or
 *  stops reading. */
async function pour(chunks: AsyncIterable<string | Uint8Array>, response: ServerResponse, clock: Clock): Promise<void> {
  for await (const chunk of chunks) {
    if (response.destroyed) return
    if (!response.write(chunk) && !(await drained(response, 'drain', clock))) return
  }
  response.end()
  await drained(response, 'finish', clock)
}

/** Lets a stream that nobody will read clean up. */
async function discard({ body }: HttpResponse): Promise<void> {
  if (typeof body === 'string' || body instanceof Uint8Array) return
  await body[Symbol.asyncIterator]().return?.()
}

/** Parts of a request that a proxy in front of this server could read differently. Undefined for an unambiguous
 *  request. */
function faultOf({ rawHeaders, headers, httpVersion }: IncomingMessage): string | undefined {
  const hosts = rawHeaders.filter((name, index) => index % 2 === 0 && name.toLowerCase() === 'host').length
  if (hosts > 1) return 'A request has one Host header.'
  if (hosts === 0 && httpVersion !== '1.0') return 'A request has a Host header.'
  const coding = headers['transfer-encoding']
  return coding === undefined || coding.trim().toLowerCase() === 'chunked'
    ? undefined
    : 'The only transfer coding is chunked.'
}

interface BrokenAnswer {
  readonly headers: Readonly<Record<string, string>>
  readonly document: string
}

function problemOf(status: number, detail: string, random: Random): BrokenAnswer {
  const document = JSON.stringify({ type: 'about:blank', title: STATUS_CODES[status], status, detail })
  const headers = {
    ...API_HEADERS,
    'x-request-id': newUuid(random),
    'content-type': 'application/problem+json',
    'content-length': String(Buffer.byteLength(document)),
    connection: 'close',
  }
  return { headers, document }
}

/** Something that is no request for the service is answered, and its connection ends: nobody knows where the next
 *  request starts. */
function refuse(
  response: ServerResponse,
  { random }: Pick<ServerOptions, 'random'>,
  status: number,
  detail: string,
): void {
  const { headers, document } = problemOf(status, detail, random)
  response.writeHead(status, headers).end(document)
}

const BROKEN: Readonly<Record<string, readonly [number, string]>> = {
  HPE_HEADER_OVERFLOW: [431, 'The headers are too large.'],
  ERR_HTTP_REQUEST_TIMEOUT: [408, 'The request took too long to arrive.'],
}

/** Input that is not HTTP, or too slow or too large to become a request, is answered and disconnected. */
function refuseBroken(error: NodeJS.ErrnoException, socket: Duplex, random: Random): void {
  if (error.code === 'ECONNRESET' || !socket.writable) return void socket.destroy()
  const [status, detail] = BROKEN[error.code ?? ''] ?? [400, 'The request is not valid HTTP.']
  const { headers, document } = problemOf(status, detail, random)
  const head = Object.entries(headers)
    .map(([name, value]) => `${name}: ${value}\r\n`)
    .join('')
  socket.end(`HTTP/1.1 ${status} ${STATUS_CODES[status]}\r\n${head}\r\n${document}`)
}
