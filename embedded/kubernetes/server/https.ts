/** Serves the core over HTTPS: bodies, tokens, streams. Apart from authentication, it knows nothing of Kubernetes. */
import { isUtf8 } from 'node:buffer'
import { createServer, type Server } from 'node:https'
import type { IncomingMessage, ServerResponse } from 'node:http'
import { listen } from '../../../kit/sys/listen.ts'
import { promisify } from 'node:util'
import { gzip } from 'node:zlib'
import { authorizePath } from '../access/authorize.ts'
import { actingUser } from '../access/impersonate.ts'
import { drained } from '../../../kit/sys/drain.ts'
import type { Clock } from '../../../kit/sys/clock.ts'
import type { Logger } from '../../../kit/sys/log.ts'
import { BODY_MOST_BYTES } from '../core/body.ts'
import type { Core } from '../core/core.ts'
import type { User } from '../core/object.ts'
import type { Request, Response } from '../core/request.ts'
import { badRequest, bodyTooLarge, methodNotAllowed, Refusal, toStatus, unauthorized } from '../core/status.ts'
import type { ServerCertificates } from './certificates.ts'
import { jsonFromProtobuf, PROTOBUF } from './protobuf.ts'
import type { RequestMetrics } from './metrics.ts'

const KEEP_ALIVE_MILLISECONDS = 65_000
const HEADERS_MILLISECONDS = 30_000
const CLOSE_GRACE_MILLISECONDS = 3_000
const COMPRESS_FROM_BYTES = 128 * 1024
/** A reader must take this much in the time for draining a stream. */
const PIECE_BYTES = 1024 * 1024
const METHODS = new Set(['GET', 'POST', 'PUT', 'PATCH', 'DELETE'])
/** Paths without authentication: health and version. */
const OPEN_PATHS = new Set(['/livez', '/readyz', '/healthz', '/version'])
const compress = promisify(gzip)

export interface HttpsOptions {
  readonly core: Core
  readonly certificates: ServerCertificates
  readonly host: string
  readonly port: number
  readonly log: Logger
  readonly metrics: RequestMetrics
  readonly clock: Clock
}

export interface HttpsServer {
  readonly port: number
  /** Accepts no new requests and ends the streams. */
  close(): Promise<void>
}

export async function serveHttps(options: HttpsOptions): Promise<HttpsServer> {
  const { certificates, host, port, log } = options
  const server = createServer(
    {
      cert: certificates.certificate,
      key: certificates.key,
      ca: certificates.authority,
      keepAliveTimeout: KEEP_ALIVE_MILLISECONDS,
      headersTimeout: HEADERS_MILLISECONDS,
      requestTimeout: 0,
      noDelay: true,
    },
    (incoming, outgoing) => {
      serve(options, incoming, outgoing).catch((error: unknown) => {
        // nobody waits for the response after a client has disconnected
        log[incoming.socket.destroyed ? 'info' : 'warn']('a response could not be finished', { error })
        outgoing.destroy()
      })
    },
  )
  return { port: await listen(server, { host, port }), close: () => close(server, options.clock) }
}

/** Open requests may finish; connections that are still open after the grace period are closed. */
const close = (server: Server, clock: Clock): Promise<void> =>
  new Promise((resolve) => {
    const cancel = clock.after(CLOSE_GRACE_MILLISECONDS, () => server.closeAllConnections())
    server.close(() => {
      cancel()
      resolve()
    })
    server.closeIdleConnections()
  })

async function serve(options: HttpsOptions, incoming: IncomingMessage, outgoing: ServerResponse): Promise<void> {
  const done = options.metrics.began(incoming.method ?? '', incoming.url ?? '')
  outgoing.once('close', () => done(outgoing.statusCode))
  const disconnect = new AbortController()
  outgoing.once('close', () => disconnect.abort())
  try {
    const path = (incoming.url ?? '/').split('?')[0] ?? '/'
    const user = userOf(options.core, incoming)
    if (!user && !OPEN_PATHS.has(path)) throw unauthorized()
    const request = {
      ...(await requestOf(incoming, disconnect.signal)),
      isAuthentic: () => isStillUser(options.core, incoming, user),
    }
    if (path === '/metrics') {
      authorizePath(options.core.engine, user ?? ANONYMOUS, request, path)
      return await send(
        outgoing,
        incoming,
        200,
        { 'content-type': options.metrics.contentType },
        await options.metrics.text(),
        options.clock,
      )
    }
    await reply(await options.core.handle(request, user ?? ANONYMOUS), incoming, outgoing, options.clock)
  } catch (error) {
    if (!(error instanceof Refusal)) throw error
    await send(
      outgoing,
      incoming,
      error.code,
      { 'content-type': 'application/json' },
      JSON.stringify(toStatus(error)),
      options.clock,
    )
  }
}

const ANONYMOUS: User = { name: 'system:anonymous', groups: ['system:unauthenticated'] }

function userOf({ engine }: Core, incoming: IncomingMessage): User | undefined {
  const found = /^bearer\s+(\S+)$/i.exec(incoming.headers.authorization ?? '')
  const user = found?.[1] === undefined ? undefined : engine.authenticate(found[1])
  return user && actingUser(engine.authorizer, user, incoming.headersDistinct)
}

/** Checks the current tokens: the token may have been revoked or have expired. */
function isStillUser(core: Core, incoming: IncomingMessage, user: User | undefined): boolean {
  try {
    return userOf(core, incoming)?.name === user?.name
  } catch (error) {
    if (error instanceof Refusal) return false // the right to impersonate was revoked
    throw error
  }
}

async function requestOf(incoming: IncomingMessage, signal: AbortSignal): Promise<Request> {
  const method = incoming.method ?? ''
  if (!METHODS.has(method)) throw methodNotAllowed()
  const headers: Record<string, string> = {}
  for (const [name, value] of Object.entries(incoming.headers))
    if (value !== undefined) headers[name] = Array.isArray(value) ? value.join(', ') : value
  delete headers.authorization
  const bytes = method === 'GET' ? Buffer.alloc(0) : await bodyOf(incoming)
  const base = { method: method as Request['method'], path: incoming.url ?? '/', signal } // one of METHODS
  if (bytes.length === 0) return { ...base, headers }
  if ((headers['content-type'] ?? '').startsWith(PROTOBUF))
    return { ...base, headers: { ...headers, 'content-type': 'application/json' }, body: jsonFromProtobuf(bytes) }
  if (!isUtf8(bytes)) throw badRequest('the body is not UTF-8')
  return { ...base, headers, body: bytes.toString() }
}

async function bodyOf(incoming: IncomingMessage): Promise<Buffer> {
  const chunks: Buffer[] = []
  let length = 0
  // without an encoding, requests yield buffers
  for await (const chunk of incoming as AsyncIterable<Buffer>) {
    length += chunk.length
    if (length > BODY_MOST_BYTES) throw bodyTooLarge(BODY_MOST_BYTES)
    chunks.push(chunk)
  }
  return Buffer.concat(chunks)
}

async function reply(
  response: Response,
  incoming: IncomingMessage,
  outgoing: ServerResponse,
  clock: Clock,
): Promise<void> {
  if (!response.isStream)
    return send(outgoing, incoming, response.status, response.headers, await response.text(), clock)
  outgoing.writeHead(response.status, { 'cache-control': 'no-cache, private', ...response.headers })
  outgoing.flushHeaders() // clients start their timeout when they see the headers
  for await (const line of response.lines()) {
    if (outgoing.destroyed) return
    if (!outgoing.write(`${line}\n`) && !(await drained(outgoing, 'drain', clock))) return
  }
  outgoing.end()
  await drained(outgoing, 'finish', clock)
}

async function send(
  outgoing: ServerResponse,
  incoming: IncomingMessage,
  status: number,
  headers: Readonly<Record<string, string>>,
  text: string,
  clock: Clock,
): Promise<void> {
  const isLarge =
    text.length > COMPRESS_FROM_BYTES && /\bgzip\b/.test(String(incoming.headers['accept-encoding'] ?? ''))
  const body = isLarge ? await compress(text, { level: 1 }) : Buffer.from(text)
  const length: Record<string, number> = status === 304 ? {} : { 'content-length': body.length }
  outgoing.writeHead(status, {
    'cache-control': 'no-cache, private',
    ...headers,
    ...(isLarge ? { 'content-encoding': 'gzip' } : {}),
    ...length,
  })
  // A list may be large, and a client that stops reading would hold it forever.
  for (let at = 0; status !== 304 && at < body.length; at += PIECE_BYTES)
    if (!outgoing.write(body.subarray(at, at + PIECE_BYTES)) && !(await drained(outgoing, 'drain', clock))) return
  outgoing.end()
  await drained(outgoing, 'finish', clock)
}
