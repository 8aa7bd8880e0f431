/** Ports of an address in the network namespace of the cloud, at which nodes of clusters reach their control planes.
 *  Each connection is passed to the socket of the host of control planes, with the port in the first line. */
import { connect, createServer, type Server } from 'node:net'
import type { NodesListener } from '../kit/process-settings.ts'
import { listen } from '../../kit/sys/listen.ts'

const CONNECTIONS_MAXIMUM = 1_024

/** Rejects when one of the ports is unavailable. */
export async function openNodesListener({
  address,
  firstPort,
  ports,
  socket,
}: NodesListener): Promise<readonly Server[]> {
  const all = Array.from({ length: ports }, (_, index) => firstPort + index)
  return Promise.all(all.map((port) => openListener(address, port, socket)))
}

async function openListener(host: string, port: number, socket: string): Promise<Server> {
  const server = createServer({ allowHalfOpen: true }, (client) => {
    const end = connect({ path: socket, allowHalfOpen: true })
    client.on('error', () => end.destroy()).once('close', () => end.destroy())
    end.on('error', () => client.destroy()).once('close', () => client.destroy())
    end.write(`${port}\n`)
    client.pipe(end)
    end.pipe(client)
  })
  server.maxConnections = CONNECTIONS_MAXIMUM
  await listen(server, { host, port })
  return server
}
