/** The interface of the host for the platform, with a token. It also serves metrics. */
import { createHash, timingSafeEqual } from 'node:crypto'
import { createServer, type IncomingMessage, type RequestListener } from 'node:http'
import { createServer as createSecureServer } from 'node:https'
import { CALLS, type CallName } from '../../integrations/control-planes/calls.ts'
import type { ControlPlanes } from '../../integrations/control-planes/control.ts'
import type { Certificate } from '../../kit/sys/certificate.ts'
import type { Logger } from '../../kit/sys/log.ts'
import type { Registry } from '../../kit/sys/metrics.ts'
import { LOOPBACK } from './credentials.ts'
import { Refused } from './refused.ts'
import { textWithin } from '../../kit/http/bounded.ts'
import { closeNow, listen } from '../../kit/sys/listen.ts'
import { tryJson } from '../../kit/http/json.ts'

export interface ControlServerOptions {
  readonly port: number
  /** Address and certificate (TLS) for listening to other machines; absent when only this machine has access. */
  readonly open?: { readonly host: string; readonly certificate: Certificate } | undefined
  readonly token: string
  readonly planes: ControlPlanes
  readonly metrics: Registry
  readonly log: Logger
}

/** Large enough for the agent of an organisation platform. */
const BODY_BYTES_MAXIMUM = 262_144
const HEADER_BYTES_MAXIMUM = 16_384
const digest = (text: string): Buffer => createHash('sha256').update(text).digest()

interface Answer {
  readonly status: number
  readonly text?: string
  readonly type?: string
}

/** Returns the function that stops it. */
export async function startControl(options: ControlServerOptions): Promise<{ stop(): Promise<void> }> {
  const expected = digest(`Bearer ${options.token}`)
  const serve: RequestListener = (request, response) => {
    const isKnown = timingSafeEqual(digest(request.headers.authorization ?? ''), expected)
    const answering = isKnown ? answer(options, request) : Promise.resolve<Answer>({ status: 401 })
    answering
      .catch((error: unknown): Answer => {
        if (error instanceof Refused) return { status: 409, text: JSON.stringify(error.toBody()) }
        // The caller retries, and reports a lasting failure.
        options.log.info('control request failed', { error })
        return { status: 503, text: 'try again' }
      })
      .then(({ status, text = '', type = 'application/json' }) => {
        response.writeHead(status, { 'content-type': type, 'cache-control': 'no-store' }).end(text)
      })
      .catch(() => response.destroy())
  }
  const { open } = options
  const server =
    open === undefined
      ? createServer({ maxHeaderSize: HEADER_BYTES_MAXIMUM }, serve)
      : createSecureServer(
          { maxHeaderSize: HEADER_BYTES_MAXIMUM, cert: open.certificate.certificate, key: open.certificate.key },
          serve,
        )
  await listen(server, { host: open?.host ?? LOOPBACK, port: options.port })
  return {
    stop: () => closeNow(server),
  }
}

const isCall = (name: string): name is CallName => Object.hasOwn(CALLS, name)

async function answer({ planes, metrics }: ControlServerOptions, request: IncomingMessage): Promise<Answer> {
  const { pathname } = new URL(request.url ?? '', 'http://localhost')
  if (pathname === '/metrics' && request.method === 'GET')
    return { status: 200, text: await metrics.metrics(), type: metrics.contentType }
  const name = /^\/calls\/([A-Za-z]{1,32})$/.exec(pathname)?.[1]
  if (name === undefined || !isCall(name)) return { status: 404 }
  if (request.method !== 'POST') return { status: 405 }
  const body = await textWithin(request, BODY_BYTES_MAXIMUM)
  if (body === undefined) return { status: 413 }
  const values = CALLS[name].takes.safeParse(tryJson(body))
  if (!values.success) return { status: 400, text: values.error.message }
  // The schema of this method has validated the arguments.
  const call = planes[name] as (...taken: readonly unknown[]) => Promise<unknown>
  return { status: 200, text: JSON.stringify(await call(...values.data)) ?? '' }
}
