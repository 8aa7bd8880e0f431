/** Free ports for programs that take only a number. Another process may take the port first, so callers retry with
 *  another. */
import { createServer } from 'node:net'

export interface PortRange {
  readonly first: number
  readonly last: number
}

/** A port that nobody listens on now: one of the range, or any. Rejects when there is none. */
export async function freePort(host: string, range?: PortRange, taken: readonly number[] = []): Promise<number> {
  if (range === undefined) return tryPort(host, 0)
  for (let port = range.first; port <= range.last; port++) {
    const free = taken.includes(port) ? undefined : await tryPort(host, port).catch(() => undefined)
    if (free !== undefined) return free
  }
  throw new Error(`no port from ${range.first} to ${range.last} is free`)
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
