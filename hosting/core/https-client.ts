/** Requests over TLS with a client's certificate. */
import { Agent, request } from 'node:https'
import type { IncomingMessage } from 'node:http'
import { readText } from '../../kit/http/bounded.ts'
import type { Certificate } from '../../kit/sys/certificate.ts'
import type { Clock } from '../../kit/sys/clock.ts'

export interface Client {
  /** Returns the response as a stream. Throws network errors. */
  open(url: string, options?: RequestOptions): Promise<IncomingMessage>
  /** Returns the complete response. Throws TooLong, and an error when it takes too long. */
  send(url: string, options?: RequestOptions): Promise<{ readonly status: number; readonly text: string }>
  close(): void
}

export interface RequestOptions {
  readonly method?: string
  readonly body?: unknown
  readonly type?: string
  readonly timeoutMilliseconds?: number
  /** Limit of the complete response. */
  readonly answerBytesMaximum?: number
  /** Limit of the time until `send` has the complete response. */
  readonly wholeMilliseconds?: number
}

const TIMEOUT_MILLISECONDS = 10_000
/** Limit between the first and the last byte of a response; a response that trickles counts as failed. */
const WHOLE_MILLISECONDS = 60_000
/** Concurrent requests of one client; further ones wait. This bounds the memory of all responses together. */
const REQUESTS_MAXIMUM = 8
/** Default for one object or a short list. Callers that expect more set their own limit. */
const ANSWER_BYTES_MAXIMUM = 8 * 1024 ** 2

interface ClientOptions {
  readonly clock: Clock
  /** Name in the server's certificate, if it is not the host of the address. */
  readonly serverName?: string
  /** REQUESTS_MAXIMUM when absent. */
  readonly requestsMaximum?: number
}

/** `authority` verifies servers; certificate and key identify the client. */
export function openClient(
  authority: string,
  { certificate, key }: Certificate,
  { clock, serverName, requestsMaximum: maxSockets = REQUESTS_MAXIMUM }: ClientOptions,
): Client {
  const named = serverName === undefined ? {} : { servername: serverName }
  const tls = { ca: authority, cert: certificate, key, ...named }
  const agent = new Agent({ ...tls, keepAlive: true, maxSockets, maxFreeSockets: REQUESTS_MAXIMUM })
  const open: Client['open'] = (url, { method = 'GET', body, type = 'application/json', timeoutMilliseconds } = {}) =>
    new Promise((resolve, reject) => {
      const sent = request(
        url,
        {
          agent,
          method,
          timeout: timeoutMilliseconds ?? TIMEOUT_MILLISECONDS,
          headers: body === undefined ? {} : { 'content-type': type },
        },
        resolve,
      )
      sent.once('timeout', () => sent.destroy(new Error('no answer in time')))
      sent.once('error', reject)
      sent.end(body === undefined ? undefined : JSON.stringify(body))
    })
  return {
    open,
    async send(url, options) {
      const response = await open(url, options)
      const cancel = clock.after(options?.wholeMilliseconds ?? WHOLE_MILLISECONDS, () =>
        response.destroy(new Error('no whole answer in time')),
      )
      const text = await readText(response, options?.answerBytesMaximum ?? ANSWER_BYTES_MAXIMUM).finally(cancel)
      return { status: response.statusCode ?? 0, text }
    },
    close: () => agent.destroy(),
  }
}
