/** Where guests of user-mode networking reach the metadata service: a port on the loopback. QEMU joins each connection of a guest to it by a
 *  small program (`metadata-pipe`), which says first, on a line of its own, the secret that tells whose guest it is. */
import { createServer as createHttpServer, type IncomingMessage, type ServerResponse } from 'node:http'
import { type AddressInfo, createServer, type Socket } from 'node:net'
import type { Clock } from '../../../kit/sys/clock.ts'
import type { Logger } from '../../../kit/sys/log.ts'
import { answerMetadata, type AskingGuest } from './metadata-service.ts'

export interface MetadataListener {
  readonly port: number
  stop(): Promise<void>
}

export interface MetadataListenerOptions {
  /** The guest with this secret; undefined when there is none. */
  readonly guestOf: (secret: string) => Promise<AskingGuest | undefined>
  readonly clock: Clock
  readonly log: Logger
}

const SECRET_LENGTH_MAXIMUM = 128
const HEADER_BYTES_MAXIMUM = 8_192
const REQUEST_MILLISECONDS = 5_000
const CONNECTIONS_MAXIMUM = 256

/** Resolves when it listens. */
export async function startMetadataListener({ guestOf, clock, log }: MetadataListenerOptions): Promise<MetadataListener> {
  const secrets = new WeakMap<Socket, string>()

  async function answer(request: IncomingMessage, response: ServerResponse): Promise<void> {
    request.resume()
    const guest = await guestOf(secrets.get(request.socket) ?? '')
    if (guest === undefined) return void response.destroy()
    const { method = '', url: path = '', headers } = request
    const { status, type, body } = await answerMetadata({ method, path, headers }, guest, clock.now())
    const length = Buffer.byteLength(body)
    response.writeHead(status, { 'content-type': type, 'content-length': length, 'cache-control': 'no-store', connection: 'close' }).end(method === 'HEAD' ? undefined : body)
  }

  const http = createHttpServer({ maxHeaderSize: HEADER_BYTES_MAXIMUM, headersTimeout: REQUEST_MILLISECONDS, requestTimeout: REQUEST_MILLISECONDS }, (request, response) => {
    answer(request, response).catch((error: unknown) => {
      log.warn('a guest could not be told its metadata', { error })
      response.destroy()
    })
  })
  const server = createServer((socket) => {
    socket.on('error', () => socket.destroy())
    const cancel = clock.after(REQUEST_MILLISECONDS, () => socket.destroy())
    socket.once('close', cancel)
    readLine(socket, (secret) => {
      cancel()
      secrets.set(socket, secret)
      http.emit('connection', socket)
    })
  })
  server.maxConnections = CONNECTIONS_MAXIMUM
  await new Promise<void>((resolve, reject) => {
    server.once('error', reject)
    server.listen(0, '127.0.0.1', () => resolve())
  })
  const { port } = server.address() as AddressInfo // a listening TCP server has one
  return {
    port,
    async stop() {
      const closed = new Promise<void>((resolve) => server.close(() => resolve()))
      http.closeAllConnections()
      await closed
    },
  }
}

/** What follows the line is left in the socket. */
function readLine(socket: Socket, take: (line: string) => void): void {
  let head = Buffer.alloc(0)
  const look = () => {
    for (let chunk = socket.read() as Buffer | null; chunk !== null; chunk = socket.read() as Buffer | null) {
      head = Buffer.concat([head, chunk])
      const end = head.indexOf('\n')
      if (end < 0 && head.length > SECRET_LENGTH_MAXIMUM) return void socket.destroy()
      if (end < 0) continue
      socket.off('readable', look)
      if (head.length > end + 1) socket.unshift(head.subarray(end + 1))
      return take(head.subarray(0, end).toString('latin1'))
    }
  }
  socket.on('readable', look)
}
