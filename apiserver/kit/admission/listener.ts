/** The webhook's HTTPS listener: one path, one method, bounded bodies. The Kubernetes API authenticates with a bearer
 *  token or a client certificate. When neither is configured nobody can authenticate: requests are judged but never
 *  recorded. */
import { createHash, timingSafeEqual } from 'node:crypto'
import type { IncomingMessage, ServerResponse } from 'node:http'
import { createServer } from 'node:https'
import type { TLSSocket } from 'node:tls'
import { Unavailable } from '../../../domain/problem.ts'
import type { Certificate } from '../../../kit/sys/certificate.ts'
import type { Logger } from '../../../kit/sys/log.ts'
import type { Admit } from './admit.ts'
import { AdmissionReview } from './review.ts'
import { textWithin } from '../../../kit/http/bounded.ts'
import { listen } from '../../../kit/sys/listen.ts'
import { tryJson } from '../../../kit/http/json.ts'

export const WEBHOOK_PATH = '/admission'

/** How the Kubernetes API authenticates; any of the given ways is enough. */
export interface CallerCredentials {
  readonly token?: string | undefined
  /** PEM of the authority that signs client certificates of the Kubernetes API, and of nobody else. */
  readonly clientAuthority?: string | undefined
}

export interface ListenerOptions {
  readonly host: string
  /** 0 picks a free port. */
  readonly port: number
  readonly certificate: Certificate
  readonly callers: CallerCredentials
  readonly admit: Admit
  readonly log: Logger
}

export interface Listener {
  readonly port: number
  /** From now on every connection closes after its next answer. */
  drain(): void
  /** Lets running reviews finish. */
  stop(): Promise<void>
}

/** Two objects of the largest size that etcd accepts, and what surrounds them. */
const BODY_BYTES_MAXIMUM = 4 * 1024 * 1024
const CONNECTIONS_MAXIMUM = 256
const REQUEST_TIMEOUT_MILLISECONDS = 30_000

/** Resolves when it listens. */
export async function startListener({
  host,
  port,
  certificate,
  callers,
  admit,
  log,
}: ListenerOptions): Promise<Listener> {
  const server = createServer({
    cert: certificate.certificate,
    key: certificate.key,
    minVersion: 'TLSv1.2',
    requestTimeout: REQUEST_TIMEOUT_MILLISECONDS,
    ...(callers.clientAuthority === undefined
      ? {}
      : { requestCert: true, rejectUnauthorized: false, ca: callers.clientAuthority }),
  })
  server.maxConnections = CONNECTIONS_MAXIMUM
  let isDraining = false
  server.on('request', (request, response) => {
    if (isDraining) response.setHeader('connection', 'close')
    answer(request, response, { callers, admit }).catch((error: unknown) => {
      // Kubernetes tells its client that it may retry; a client that was killed no longer waits.
      const isOrdinary = error instanceof Unavailable || request.socket.destroyed
      log[isOrdinary ? 'info' : 'warn']('review failed', { error })
      if (response.headersSent) response.destroy()
      else reply(response, 500, { message: 'The review could not be made now.' })
    })
  })
  const boundPort = await listen(server, { host, port })
  return {
    port: boundPort,
    drain: () => void (isDraining = true),
    stop: () =>
      new Promise((resolve) => {
        server.close(() => resolve())
        server.closeIdleConnections()
      }),
  }
}

async function answer(
  request: IncomingMessage,
  response: ServerResponse,
  { callers, admit }: Pick<ListenerOptions, 'callers' | 'admit'>,
): Promise<void> {
  if (request.url?.split('?')[0] !== WEBHOOK_PATH) return reply(response, 404, { message: 'There is nothing here.' })
  if (request.method !== 'POST') return reply(response, 405, { message: 'Only POST is offered.' }, { allow: 'POST' })
  const isAuthenticated = isCaller(request, callers)
  if (!isAuthenticated && (callers.token !== undefined || callers.clientAuthority !== undefined))
    return reply(response, 401, { message: 'Only the Kubernetes API is answered.' }, { connection: 'close' })
  const body = await textWithin(request, BODY_BYTES_MAXIMUM)
  if (body === undefined)
    return reply(response, 413, { message: `At most ${BODY_BYTES_MAXIMUM} bytes are taken.` }, { connection: 'close' })
  const review = AdmissionReview.safeParse(tryJson(body))
  if (!review.success)
    return reply(response, 400, { message: 'The body is not an AdmissionReview of admission.k8s.io/v1.' })
  reply(response, 200, await admit(review.data.request, { isAuthenticated }))
}

const digestOf = (text: string): Buffer => createHash('sha256').update(text).digest()

/** Nobody is authenticated when there are no credentials to compare with. */
function isCaller({ headers, socket }: IncomingMessage, { token, clientAuthority }: CallerCredentials): boolean {
  // the server speaks HTTPS only
  if (clientAuthority !== undefined && (socket as TLSSocket).authorized) return true
  return token !== undefined && timingSafeEqual(digestOf(headers.authorization ?? ''), digestOf(`Bearer ${token}`))
}

const reply = (
  response: ServerResponse,
  status: number,
  body: object,
  headers: Readonly<Record<string, string>> = {},
): void =>
  void response
    .writeHead(status, { 'content-type': 'application/json', 'cache-control': 'no-store', ...headers })
    .end(JSON.stringify(body))
