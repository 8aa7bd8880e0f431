/** Accepts connections of nodes from the cloud's network. The first line of each contains the port that the node
 *  connected to. A connection to a port of no control plane is closed. */
import { rm } from 'node:fs/promises'
import { createServer, type Socket } from 'node:net'
import { listen } from '../../kit/sys/listen.ts'

const LINE_BYTES_MAXIMUM = 8
const CONNECTIONS_MAXIMUM = 4_096

/** Listens once this resolves. `take` returns whether a control plane handles the connection. */
export async function openNodeListener(
  socket: string,
  take: (client: Socket, port: number) => boolean,
): Promise<{ close(): void }> {
  await rm(socket, { force: true }) // left by an earlier process
  const clients = new Set<Socket>()
  const server = createServer((client) => {
    clients.add(client)
    client.once('close', () => clients.delete(client))
    client.on('error', () => client.destroy())
    readPort(client, (port) => {
      if (port === undefined || !take(client, port)) client.destroy()
    })
  })
  server.maxConnections = CONNECTIONS_MAXIMUM
  await listen(server, { path: socket, readableAll: false, writableAll: false })
  return {
    close() {
      server.close()
      for (const client of clients) client.destroy()
    },
  }
}

/** Reads the number in the first line; the data after it stay in the socket. */
function readPort(client: Socket, then: (port: number | undefined) => void): void {
  let head = Buffer.alloc(0)
  const look = () => {
    const chunk: Buffer | null = client.read() // a socket without an encoding yields bytes
    if (chunk === null) return
    head = Buffer.concat([head, chunk])
    const end = head.indexOf('\n')
    if (end < 0 && head.length < LINE_BYTES_MAXIMUM) return
    client.off('readable', look)
    const rest = head.subarray(end + 1)
    if (end >= 0 && rest.length > 0) client.unshift(rest)
    const text = head.subarray(0, Math.max(end, 0)).toString('latin1')
    then(/^\d{1,5}$/.test(text) ? Number(text) : undefined)
  }
  client.on('readable', look)
}
