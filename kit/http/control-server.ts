/** A server for the platform, with a token: the host of control planes and the front end of object storage have one. */
import { createHash, timingSafeEqual } from 'node:crypto'
import { createServer, type IncomingMessage, type RequestListener } from 'node:http'
import { createServer as createSecureServer } from 'node:https'
import type { Certificate } from '../sys/certificate.ts'
import { closeNow, listen } from '../sys/listen.ts'
import type { Logger } from '../sys/log.ts'
import type { Registry } from '../sys/metrics.ts'

export interface ControlAnswer {
  readonly status: number
  readonly text?: string
  readonly type?: string
}

export interface ControlListener {
  readonly host: string
  /** 0 for any that is free. */
  readonly port: number
  /** For TLS; without it the server speaks HTTP. */
  readonly certificate?: Certificate | undefined
  readonly token: string
  /** Served at `/metrics`. */
  readonly metrics: Registry
  readonly log: Logger
}

export interface ControlServer {
  readonly port: number
  stop(): Promise<void>
}

const HEADER_BYTES_MAXIMUM = 16_384
const digest = (text: string): Buffer => createHash('sha256').update(text).digest()

/** Listens once this resolves. An error of `answer` becomes 503: the caller retries, and reports a lasting failure. */
export async function startControlServer(
  { host, port, certificate, token, metrics, log }: ControlListener,
  answer: (request: IncomingMessage, url: URL) => Promise<ControlAnswer>,
): Promise<ControlServer> {
  const expected = digest(`Bearer ${token}`)
  async function answerKnown(request: IncomingMessage): Promise<ControlAnswer> {
    if (!timingSafeEqual(digest(request.headers.authorization ?? ''), expected)) return { status: 401 }
    const url = new URL(request.url ?? '', 'http://localhost')
    if (url.pathname === '/metrics' && request.method === 'GET')
      return { status: 200, text: await metrics.metrics(), type: metrics.contentType }
    return answer(request, url)
  }
  const serve: RequestListener = (request, response) => {
    answerKnown(request)
      .catch((error: unknown): ControlAnswer => {
        log.info('control request failed', { error })
        return { status: 503, text: 'try again' }
      })
      .then(({ status, text = '', type = 'application/json' }) => {
        response.writeHead(status, { 'content-type': type, 'cache-control': 'no-store' }).end(text)
      })
      .catch(() => response.destroy())
  }
  const limits = { maxHeaderSize: HEADER_BYTES_MAXIMUM }
  const server =
    certificate === undefined
      ? createServer(limits, serve)
      : createSecureServer({ ...limits, cert: certificate.certificate, key: certificate.key }, serve)
  return { port: await listen(server, { host, port }), stop: () => closeNow(server) }
}
