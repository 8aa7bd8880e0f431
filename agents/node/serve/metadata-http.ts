/** HTTP of the metadata service, on connections whose guest is known. The network drivers accept the connections. */
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import type { Socket } from 'node:net'
import { Unavailable } from '../../../domain/problem.ts'
import type { Clock } from '../../../kit/sys/clock.ts'
import type { Logger } from '../../../kit/sys/log.ts'
import { answerMetadata, type RequestingGuest } from './metadata-service.ts'

export interface MetadataHttpOptions {
  /** The guest with the connection's mark; undefined when there is none. */
  readonly guestOf: (mark: string) => Promise<RequestingGuest | undefined>
  readonly clock: Clock
  readonly log: Logger
}

export interface MetadataHttp {
  /** Answers on the connection; nothing may have been read from it. */
  take(socket: Socket, mark: string): void
  /** Ends all connections. */
  close(): void
}

const HEADER_BYTES_MAXIMUM = 8_192
/** Limit for each phase of a connection: until its guest is known, and from then on. */
export const REQUEST_MILLISECONDS = 5_000
/** Limit of concurrent connections of all guests of the host. */
export const CONNECTIONS_MAXIMUM = 256

export function openMetadataHttp({ guestOf, clock, log }: MetadataHttpOptions): MetadataHttp {
  const marks = new WeakMap<Socket, string>()

  async function answer(request: IncomingMessage, response: ServerResponse): Promise<void> {
    request.resume()
    const guest = await guestOf(marks.get(request.socket) ?? '')
    if (guest === undefined) return void response.destroy()
    const { method = '', url: path = '', headers } = request
    const { status, type, body } = await answerMetadata({ method, path, headers }, guest, clock.now())
    const length = Buffer.byteLength(body)
    response
      .writeHead(status, {
        'content-type': type,
        'content-length': length,
        'cache-control': 'no-store',
        connection: 'close',
      })
      .end(method === 'HEAD' ? undefined : body)
  }

  const http = createServer({ maxHeaderSize: HEADER_BYTES_MAXIMUM }, (request, response) => {
    answer(request, response).catch((error: unknown) => {
      // The guest retries. Callers that keep retrying report an outage.
      const isOrdinary = error instanceof Unavailable || request.socket.destroyed
      log[isOrdinary ? 'info' : 'warn']('metadata could not be sent to a guest', { error })
      response.destroy()
    })
  })
  // A client that has closed its sending side, as `nc` does at the end of its input, still gets an answer.
  Object.assign(http, { httpAllowHalfOpen: true })
  return {
    take(socket, mark) {
      marks.set(socket, mark)
      // An HTTP server that does not listen itself enforces no timeouts.
      socket.once(
        'close',
        clock.after(REQUEST_MILLISECONDS, () => socket.destroy()),
      )
      http.emit('connection', socket)
    },
    close: () => http.closeAllConnections(),
  }
}
