/** Where guests of user-mode networking reach the metadata service: a port on the loopback. QEMU connects each
 *  connection of a guest to it by a small program (`metadata-pipe`), whose first line is the secret of the guest. */
import { type AddressInfo, createServer, type Socket } from 'node:net'
import {
  CONNECTIONS_MAXIMUM,
  type MetadataHttpOptions,
  openMetadataHttp,
  REQUEST_MILLISECONDS,
} from './metadata-http.ts'

export interface MetadataListener {
  readonly port: number
  stop(): Promise<void>
}

const SECRET_LENGTH_MAXIMUM = 128

/** Guests are known by their secrets. Resolves when it listens. */
export async function startMetadataListener(options: MetadataHttpOptions): Promise<MetadataListener> {
  const http = openMetadataHttp(options)
  const server = createServer({ allowHalfOpen: true }, (socket) => {
    socket.on('error', () => socket.destroy())
    const cancel = options.clock.after(REQUEST_MILLISECONDS, () => socket.destroy())
    socket.once('close', cancel)
    readLine(socket, (secret) => {
      cancel()
      http.take(socket, secret)
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
      http.close()
      await closed
    },
  }
}

/** What follows the line is left in the socket. */
function readLine(socket: Socket, take: (line: string) => void): void {
  let head = Buffer.alloc(0)
  const look = () => {
    const read = (): Buffer | null => socket.read() // a socket without an encoding yields bytes
    for (let chunk = read(); chunk !== null; chunk = read()) {
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
