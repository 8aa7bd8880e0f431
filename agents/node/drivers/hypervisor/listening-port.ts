/** Free ports for programs that only take a port number. Another process may take the port first, so callers retry with
 *  another port. */
import { createServer } from 'node:net'
import { runInside } from '../network/namespace.ts'

export interface PortRange {
  readonly first: number
  readonly last: number
}

/** A port that nobody listens on now, from the range if there is one. Rejects when there is none. */
export async function freePort(host: string, range?: PortRange, portsInUse: readonly number[] = []): Promise<number> {
  if (range === undefined) return tryPort(host, 0)
  for (let port = range.first; port <= range.last; port++) {
    const free = portsInUse.includes(port) ? undefined : await tryPort(host, port).catch(() => undefined)
    if (free !== undefined) return free
  }
  throw new Error(`no port from ${range.first} to ${range.last} is free`)
}

/** Range when the caller chooses none. */
const PORTS_INSIDE: PortRange = { first: 49_152, last: 65_535 }
/** The state as the kernel writes it. */
const LISTENING = '0A'

/** `freePort` in a network namespace that only the agent and its guests use. */
export async function freePortInside(
  namespace: string,
  { first, last }: PortRange = PORTS_INSIDE,
  portsInUse: readonly number[] = [],
): Promise<number> {
  const sockets = (await runInside(namespace)('cat', ['/proc/self/net/tcp', '/proc/self/net/tcp6'])).split('\n')
  const used = new Set(
    sockets.flatMap((line) => {
      const [, local = '', , state] = line.trim().split(/\s+/)
      return state === LISTENING ? [Number.parseInt(local.split(':')[1] ?? '', 16)] : []
    }),
  )
  for (let port = first; port <= last; port++) if (!used.has(port) && !portsInUse.includes(port)) return port
  throw new Error(`no port from ${first} to ${last} is free`)
}

function tryPort(host: string, wanted: number): Promise<number> {
  return new Promise((resolve, reject) => {
    const server = createServer()
    server.once('error', reject)
    server.listen(wanted, host, () => {
      const address = server.address()
      server.close(() =>
        typeof address === 'object' && address !== null ? resolve(address.port) : reject(new Error('no free port')),
      )
    })
  })
}
