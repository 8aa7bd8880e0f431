/** The listener of the metadata service for guests in user-mode networking: a port on the loopback. For each connection
 *  of a guest QEMU starts a small program (`metadata-pipe`), which connects to the port and sends the guest's secret as
 *  first line. */
import { createServer, type Socket } from 'node:net'
import {
  CONNECTIONS_MAXIMUM,
  type MetadataHttpOptions,
  openMetadataHttp,
  REQUEST_MILLISECONDS,
} from './metadata-http.ts'
import { listen } from '../../../kit/sys/listen.ts'

export interface MetadataListener {
  readonly port: number
  stop(): Promise<void>
}

const SECRET_LENGTH_MAXIMUM = 128

/** Identifies guests by their secrets. Resolves when it listens. */
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
  const port = await listen(server, { host: '127.0.0.1', port: 0 })
  return {
    port,
    async stop() {
      const closed = new Promise<void>((resolve) => server.close(() => resolve()))
      http.close()
      await closed
    },
  }
}

/** Leaves the data after the line in the socket. */
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
