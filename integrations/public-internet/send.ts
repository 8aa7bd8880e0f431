/** Sends a body by HTTPS to an address on the public Internet that a customer has named. Redirects are not followed,
 *  and nothing of the answer is kept but its status. */
import { request } from 'node:https'
import type { Clock } from '../../kit/sys/clock.ts'
import { parsePublicUrl, publicOnly, type TestTrust } from './lookup.ts'

export interface PublicRequest {
  readonly method: 'POST' | 'PUT'
  readonly url: string
  readonly headers: Readonly<Record<string, string>>
  readonly body: string
  /** From the start until the status has arrived. */
  readonly timeoutMilliseconds: number
  readonly clock: Pick<Clock, 'after'>
  readonly signal?: AbortSignal | undefined
  readonly trust?: TestTrust | undefined
}

/** The status of the answer. Throws AddressRefused, and the errors of the connection. */
export async function sendToPublic({
  method,
  url: text,
  headers,
  body,
  timeoutMilliseconds,
  clock,
  signal,
  trust,
}: PublicRequest): Promise<number> {
  const url = parsePublicUrl(text)
  const options = publicOnly(url, trust)
  const over = new AbortController()
  const late = new Error(`no answer within ${timeoutMilliseconds / 1_000} seconds`)
  const cancel = clock.after(timeoutMilliseconds, () => over.abort(late))
  const bytes = Buffer.from(body)
  try {
    return await new Promise((resolve, reject) => {
      const sent = request(url, {
        ...options,
        method,
        signal: signal === undefined ? over.signal : AbortSignal.any([over.signal, signal]),
        headers: { ...headers, 'content-length': String(bytes.length), 'user-agent': 'svccloud' },
      })
      sent.once('response', ({ statusCode = 0 }) => {
        resolve(statusCode)
        sent.destroy() // the rest of the answer is of no use, however long it is
      })
      sent.once('upgrade', ({ statusCode = 0 }, socket) => {
        resolve(statusCode)
        socket.destroy()
      })
      sent.on('error', (error) => reject(over.signal.aborted ? late : error))
      // Whatever ended the request, nobody waits for it any longer.
      sent.once('close', () => reject(over.signal.aborted ? late : new Error('the connection ended without an answer')))
      sent.end(bytes)
    })
  } finally {
    cancel()
  }
}
