/** The single address in front of the API servers: passes each connection to the next ready server. */
import { connect, createServer, type Socket } from 'node:net'
import { LOOPBACK } from '../core/credentials.ts'
import { listen } from '../../kit/sys/listen.ts'

export interface BalancerOptions {
  readonly host: string
  readonly port: number
  /** Ports of the servers that are ready now. */
  readonly ready: () => readonly number[]
}

export interface Balancer {
  /** Handles a connection that arrived elsewhere. */
  take(client: Socket): void
  stop(): Promise<void>
}

const CONNECTIONS_MAXIMUM = 2_048

/** Listens once this resolves. */
export async function startBalancer({ host, port, ready }: BalancerOptions): Promise<Balancer> {
  const sockets = new Set<Socket>()
  let turn = 0
  const take = (client: Socket): void => {
    sockets.add(client)
    client.once('close', () => sockets.delete(client))
    const ports = ready()
    const start = turn++
    pipeTo(client, ...ports.map((_, index) => ports[(start + index) % ports.length] ?? 0))
  }
  const server = createServer({ noDelay: true }, take)
  server.maxConnections = CONNECTIONS_MAXIMUM
  await listen(server, { host, port, exclusive: true })
  return {
    take,
    stop: () =>
      new Promise((resolve) => {
        server.close(() => resolve())
        for (const socket of sockets) socket.destroy()
      }),
  }
}

/** Connects to the first of these loopback ports that accepts the connection. */
export function pipeTo(client: Socket, ...ports: readonly number[]): void {
  client.on('error', () => client.destroy())
  hand(client, ports)
}

function hand(client: Socket, [port, ...others]: readonly number[]): void {
  if (port === undefined || client.destroyed) return void client.destroy()
  const upstream = connect({ host: LOOPBACK, port, noDelay: true })
  let isOpen = false
  upstream.once('connect', () => {
    isOpen = true
    client.pipe(upstream)
    upstream.pipe(client)
  })
  upstream.once('error', () => (isOpen ? client.destroy() : hand(client, others)))
  upstream.once('close', () => {
    if (isOpen) client.destroy()
  })
  client.once('close', () => upstream.destroy())
}
