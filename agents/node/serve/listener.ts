/** The agent's HTTPS listener: consoles and traffic counters of its guests, for callers with the token. HTTP/1.1;
 *  errors are `{reason, message}`. */
import type { IncomingMessage, ServerResponse } from 'node:http'
import { createServer } from 'node:https'
import type { Clock } from '../../../kit/sys/clock.ts'
import type { Logger } from '../../../kit/sys/log.ts'
import { type GuestUsage, USAGE_FIELDS, USAGE_FIELDS_HEADER } from '../../../resources/instance/index.ts'
import type { GuestConsole } from '../drivers/hypervisor/hypervisor.ts'
import type { AgentCertificate } from './certificate.ts'
import { streamConsole, takeInput } from './console.ts'
import { listen } from '../../../kit/sys/listen.ts'

export interface ListenerOptions {
  readonly host: string
  /** 0 selects a free port. */
  readonly port: number
  readonly certificate: AgentCertificate
  readonly isAuthorized: (authorization: string | undefined) => Promise<boolean>
  /** Undefined when this node has no such Instance. */
  readonly consoleOf: (instance: string) => GuestConsole | undefined
  /** Traffic of the guests. */
  readonly usage: () => Promise<readonly GuestUsage[]>
  readonly clock: Clock
  readonly log: Logger
}

export interface Listener {
  readonly url: string
  /** Ends all streams, then closes. */
  stop(): Promise<void>
}

const STREAMS_MAXIMUM = 16
const CONNECTIONS_MAXIMUM = 4_096
const REQUEST_TIMEOUT_MILLISECONDS = 30_000
const USAGE_PATH = '/v1/usage'
const PATH = /^\/v1\/instances\/([a-z0-9][-a-z0-9.]{0,252})\/console$/

const MESSAGES = {
  unauthorized: 'The access token is missing or wrong.',
  not_found: 'There is no such instance on this node.',
  method_not_allowed: 'Only GET and POST are offered.',
  too_many_streams: 'Too many streams of this console are open.',
  unavailable: 'The access token cannot be checked now.',
  empty: 'There is nothing to type.',
  server_stopped: 'The guest does not run.',
  too_large: 'At most 4096 bytes are taken at once.',
  not_connected: 'The console is not attached now.',
} as const

/** Resolves when it listens. */
export async function startListener(options: ListenerOptions): Promise<Listener> {
  const { host, port, certificate, clock, log } = options
  const stopping = new AbortController()
  const answer = answerRequests(options, stopping.signal)
  const server = createServer(
    {
      cert: certificate.certificate,
      key: certificate.key,
      minVersion: 'TLSv1.2',
      requestTimeout: REQUEST_TIMEOUT_MILLISECONDS,
    },
    (request, response) => {
      request.on('error', () => response.destroy())
      response.on('error', () => response.destroy())
      answer(request, response).catch((error: unknown) => {
        // a client that has disconnected expects no answer
        log[request.socket.destroyed ? 'info' : 'error']('request failed', { error })
        response.destroy()
      })
    },
  )
  server.maxConnections = CONNECTIONS_MAXIMUM
  server.on('tlsClientError', (_error, socket) => socket.destroy())
  const boundPort = await listen(server, { host, port })
  return {
    url: `https://${host.includes(':') ? `[${host}]` : host}:${boundPort}`,
    async stop() {
      stopping.abort()
      const closed = new Promise<void>((resolve) => server.close(() => resolve()))
      server.closeIdleConnections()
      await Promise.race([closed, clock.sleep(STOP_MILLISECONDS)])
      server.closeAllConnections()
      await closed
    },
  }
}

function answerRequests(
  { isAuthorized, consoleOf, usage, clock }: ListenerOptions,
  stopping: AbortSignal,
): (request: IncomingMessage, response: ServerResponse) => Promise<void> {
  const streams = new Map<string, number>()

  async function stream(name: string, console: GuestConsole, response: ServerResponse): Promise<void> {
    const open = streams.get(name) ?? 0
    if (open >= STREAMS_MAXIMUM) return refuse(response, 429, 'too_many_streams')
    streams.set(name, open + 1)
    await streamConsole(console, response, clock, stopping)
    const left = (streams.get(name) ?? 1) - 1
    if (left === 0) streams.delete(name)
    else streams.set(name, left)
  }

  return async (request, response) => {
    const isAllowed = await isAuthorized(request.headers.authorization).catch(() => undefined)
    if (isAllowed === undefined) return refuse(response, 503, 'unavailable')
    if (!isAllowed) return refuse(response, 401, 'unauthorized')
    if (request.url === USAGE_PATH && request.method === 'GET')
      return void response
        .writeHead(200, { 'content-type': 'application/json', 'cache-control': 'no-store' })
        .end(JSON.stringify({ guests: await usageFor(request, usage) }))
    const name = PATH.exec(request.url ?? '')?.[1] ?? ''
    const console = consoleOf(name)
    if (console === undefined) return refuse(response, 404, 'not_found')
    if (request.method === 'GET') return stream(name, console, response)
    if (request.method !== 'POST') return refuse(response, 405, 'method_not_allowed')
    const refusal = await takeInput(console, request)
    if (refusal !== undefined) return refuse(response, refusal.status, refusal.reason)
    response.writeHead(204).end()
  }
}

/** What the caller understands. */
async function usageFor({ headers }: IncomingMessage, usage: ListenerOptions['usage']): Promise<readonly GuestUsage[]> {
  const guests = await usage()
  return headers[USAGE_FIELDS_HEADER] === USAGE_FIELDS ? guests : guests.map(({ load: _load, ...guest }) => guest)
}

const refuse = (response: ServerResponse, status: number, reason: keyof typeof MESSAGES): void =>
  void response
    .writeHead(status, { 'content-type': 'application/json', 'cache-control': 'no-store', connection: 'close' })
    .end(JSON.stringify({ reason, message: MESSAGES[reason] }))

/** Time for the last lines of streams to be sent. */
const STOP_MILLISECONDS = 500
