/** The one address in front of the API servers: hands each connection to the next that is ready. */
import { connect, createServer, type Socket } from 'node:net'
import { LOOPBACK } from './credentials.ts'

export interface BalancerOptions {
  readonly host: string
  readonly port: number
  /** Ports of those that are ready now. */
  readonly ready: () => readonly number[]
}

const CONNECTIONS_MAXIMUM = 2_048

/** Listens once this resolves; answers what ends it. */
export async function startBalancer({ host, port, ready }: BalancerOptions): Promise<() => Promise<void>> {
  const sockets = new Set<Socket>()
  let turn = 0
  const server = createServer({ noDelay: true }, (client) => {
    sockets.add(client)
    client.once('close', () => sockets.delete(client))
    client.on('error', () => client.destroy())
    const ports = ready()
    const start = turn++
    hand(
      client,
      ports.map((_, index) => ports[(start + index) % ports.length] ?? 0),
    )
  })
  server.maxConnections = CONNECTIONS_MAXIMUM
  await new Promise<void>((resolve, reject) => {
    server.once('error', reject)
    server.listen({ host, port, exclusive: true }, resolve)
  })
  return () =>
    new Promise((resolve) => {
      server.close(() => resolve())
      for (const socket of sockets) socket.destroy()
    })
}

/** The first of them that takes it. */
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
