/** Requests over TLS with a client's certificate. */
import { Agent, request } from 'node:https'
import type { IncomingMessage } from 'node:http'
import { readText } from '../../kit/http/bounded.ts'
import type { Certificate } from '../../kit/sys/certificate.ts'
import type { Clock } from '../../kit/sys/clock.ts'

export interface Client {
  /** The answer as it comes. Throws what the network says. */
  open(url: string, options?: RequestOptions): Promise<IncomingMessage>
  /** The whole answer. Throws TooLong, and for one that takes too long. */
  send(url: string, options?: RequestOptions): Promise<{ readonly status: number; readonly text: string }>
  close(): void
}

export interface RequestOptions {
  readonly method?: string
  readonly body?: unknown
  readonly type?: string
  readonly timeoutMilliseconds?: number
  /** Of the whole answer. */
  readonly answerBytesMaximum?: number
  /** Until the whole answer is there, by `send`. */
  readonly wholeMilliseconds?: number
}

const TIMEOUT_MILLISECONDS = 10_000
/** Of an answer from its first byte to its last: one that trickles is no answer. */
const WHOLE_MILLISECONDS = 60_000
/** At a time, of one client. Further requests wait for one of them: so long are all their answers together bounded. */
const REQUESTS_MAXIMUM = 8
/** Of one object, or of a short list: whoever asks for more says so. */
const ANSWER_BYTES_MAXIMUM = 8 * 1024 ** 2

interface ClientOptions {
  readonly clock: Clock
  /** Whom the certificate must be of, where that is not the host of the address. */
  readonly serverName?: string
  /** REQUESTS_MAXIMUM when absent. */
  readonly requestsMaximum?: number
}

/** With what servers are verified by, and what they know the client by. */
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
