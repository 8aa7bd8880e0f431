/** Requests over TLS with a client's certificate. */
import { Agent, request } from 'node:https'
import type { IncomingMessage } from 'node:http'
import { readText } from '../../http/bounded.ts'
import type { Certificate } from '../../sys/certificate.ts'

export interface Client {
  /** The answer as it comes. Throws what the network says. */
  open(url: string, options?: RequestOptions): Promise<IncomingMessage>
  /** The whole answer. Throws TooLong. */
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
}

const TIMEOUT_MILLISECONDS = 10_000
/** Of one object, or of a short list: whoever asks for more says so. */
const ANSWER_BYTES_MAXIMUM = 8 * 1024 ** 2

/** `serverName` is whom the certificate must be of, where that is not the host of the address. */
export function openClient(authority: string, { certificate, key }: Certificate, serverName?: string): Client {
  const named = serverName === undefined ? {} : { servername: serverName }
  const agent = new Agent({ ca: authority, cert: certificate, key, keepAlive: true, maxFreeSockets: 8, ...named })
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
      const text = await readText(response, options?.answerBytesMaximum ?? ANSWER_BYTES_MAXIMUM)
      return { status: response.statusCode ?? 0, text }
    },
    close: () => agent.destroy(),
  }
}
