/** The webhook's HTTPS listener: one path, one method, bounded bodies. Whether a caller is the Kubernetes API cannot be
 *  known, as that shows no credentials: nothing here changes an object, and networks keep everybody else out. */
import type { IncomingMessage, ServerResponse } from 'node:http'
import { createServer } from 'node:https'
import type { AddressInfo } from 'node:net'
import type { Certificate } from '../../kit/sys/certificate.ts'
import type { Logger } from '../../kit/sys/log.ts'
import type { Admit } from './admit.ts'
import { AdmissionReview } from './review.ts'

export const WEBHOOK_PATH = '/admission'

export interface ListenerOptions {
  readonly host: string
  /** 0 takes a free one. */
  readonly port: number
  readonly certificate: Certificate
  readonly admit: Admit
  readonly log: Logger
}

export interface Listener {
  readonly port: number
  /** Lets running reviews end. */
  stop(): Promise<void>
}

/** Two objects of the size that etcd takes, and what is around them. */
const BODY_BYTES_MAXIMUM = 4 * 1024 * 1024
const CONNECTIONS_MAXIMUM = 256
const REQUEST_TIMEOUT_MILLISECONDS = 30_000

/** Resolves when it listens. */
export async function startListener({ host, port, certificate, admit, log }: ListenerOptions): Promise<Listener> {
  const server = createServer({
    cert: certificate.certificate,
    key: certificate.key,
    minVersion: 'TLSv1.2',
    requestTimeout: REQUEST_TIMEOUT_MILLISECONDS,
  })
  server.maxConnections = CONNECTIONS_MAXIMUM
  server.on('request', (request, response) => {
    answer(request, response, admit).catch((error: unknown) => {
      log.warn('review failed', { error })
      if (response.headersSent) response.destroy()
      else reply(response, 500, { message: 'The review could not be made now.' })
    })
  })
  await new Promise<void>((resolve, reject) => {
    server.once('error', reject)
    server.listen(port, host, () => {
      server.off('error', reject)
      resolve()
    })
  })
  return {
    port: (server.address() as AddressInfo).port, // a listening TCP server has one
    stop: () =>
      new Promise((resolve) => {
        server.close(() => resolve())
        server.closeIdleConnections()
      }),
  }
}

async function answer(request: IncomingMessage, response: ServerResponse, admit: Admit): Promise<void> {
  if (request.url?.split('?')[0] !== WEBHOOK_PATH) return reply(response, 404, { message: 'There is nothing here.' })
  if (request.method !== 'POST') return reply(response, 405, { message: 'Only POST is offered.' }, { allow: 'POST' })
  const body = await readBody(request)
  if (body === undefined)
    return reply(response, 413, { message: `At most ${BODY_BYTES_MAXIMUM} bytes are taken.` }, { connection: 'close' })
  const review = AdmissionReview.safeParse(parse(body))
  if (!review.success)
    return reply(response, 400, { message: 'The body is not an AdmissionReview of admission.k8s.io/v1.' })
  reply(response, 200, await admit(review.data.request))
}

/** Undefined when it is too large. */
async function readBody(request: IncomingMessage): Promise<string | undefined> {
  const chunks: Buffer[] = []
  let length = 0
  // without an encoding, a request gives its body as Buffers
  for await (const chunk of request as AsyncIterable<Buffer>) {
    length += chunk.length
    if (length > BODY_BYTES_MAXIMUM) return undefined
    chunks.push(chunk)
  }
  return Buffer.concat(chunks).toString()
}

function parse(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch {
    return undefined
  }
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
