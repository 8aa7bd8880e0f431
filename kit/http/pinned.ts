/** HTTPS to a server without a trusted authority: its certificate is pinned by its fingerprint, and the caller
 *  authenticates with a token. */
import { createHash } from 'node:crypto'
import type { IncomingMessage } from 'node:http'
import { request as startRequest, type RequestOptions } from 'node:https'
import type { Socket } from 'node:net'
import { TLSSocket } from 'node:tls'

export interface PinnedTarget {
  readonly url: URL
  /** SHA-256 of the certificate in lower-case hex. */
  readonly fingerprint: string
  readonly token: string
}

const ANSWER_TIMEOUT_MILLISECONDS = 5_000

/** Connections whose certificate was verified to be the pinned one. */
const pinned = new WeakMap<Socket, string>()

/** Sends nothing before the certificate was verified to be the pinned one. Resolves with the response's head. An agent
 *  that reuses connections must not resume TLS sessions (`maxCachedSessions: 0`): a resumed one shows no
 *  certificate. */
export function askPinned(
  { url, fingerprint, token }: PinnedTarget,
  options: RequestOptions,
  body?: Uint8Array,
): Promise<IncomingMessage> {
  return new Promise((resolve, reject) => {
    const request = startRequest(url, {
      ...options,
      rejectUnauthorized: false,
      timeout: ANSWER_TIMEOUT_MILLISECONDS,
      headers: { ...options.headers, authorization: `Bearer ${token}` },
    })
    const sendOn = (socket: Socket): void => {
      if (pinned.get(socket) === fingerprint) request.end(body)
      else request.destroy(new Error('the certificate of the agent is not the pinned one'))
    }
    request.once('socket', (socket) => {
      if (!(socket instanceof TLSSocket) || pinned.has(socket)) return sendOn(socket)
      socket.setNoDelay(true)
      socket.once('secureConnect', () => {
        const certificate = socket.getPeerX509Certificate()
        if (certificate !== undefined) pinned.set(socket, createHash('sha256').update(certificate.raw).digest('hex'))
        sendOn(socket)
      })
    })
    request.once('timeout', () => request.destroy(new Error('the agent did not answer in time')))
    request.once('response', (response) => {
      request.setTimeout(0)
      resolve(response)
    })
    request.once('error', reject)
  })
}
