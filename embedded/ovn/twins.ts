/** Loopback addresses of the machine that represent public addresses, for programs that support no proxy: a connection
 *  to 127.18.a.b reaches 198.18.a.b, at the few ports with listeners. Each start chooses the loopback network and the
 *  ports by what is free: another cloud may have the first network, and ports of the machine's own services, or below
 *  1024 for an ordinary user, are unavailable. */
import { createServer, type Server, type Socket } from 'node:net'
import { SERVERS } from './address-plan.ts'
import { listen } from '../../kit/sys/listen.ts'

/** Destination of a connection. */
export interface Destination {
  readonly host: string
  readonly port: number
}

const NETWORKS = Array.from({ length: 100 }, (_, index) => `127.${index + 18}`)
/** Port that is held at the last address of the network while its cloud runs. */
const LOCK_PORT = 20_018
const LOCK_HOST = '255.254'
/** Offset of the twin's port when the same port is in use. */
const SHIFT = 10_000
/** Limit of the addresses with listeners; others are reached through the proxy. */
const ADDRESSES_MAXIMUM = 1_024

const SERVERS_PREFIX = SERVERS.ipv4.split('.').slice(0, 2).join('.')

export interface Twins {
  /** First half of the addresses, as `127.18`. */
  readonly loopback: string
  /** Port of the twin, by port of the server. */
  readonly ports: ReadonlyMap<number, number>
  /** Sets the addresses that are in use; the others get no listeners. */
  follow(addresses: ReadonlySet<string>): void
  close(): void
}

async function open(host: string, port: number, take: (socket: Socket) => void): Promise<Server> {
  const server = createServer({ allowHalfOpen: true, pauseOnConnect: true }, take)
  await listen(server, { host, port })
  return server
}

/** Undefined when no loopback network is free. `ports` are those of servers. */
export async function openTwins(
  ports: readonly number[],
  join: (socket: Socket, to: Destination) => void,
): Promise<Twins | undefined> {
  const held = await holdNetwork()
  if (held === undefined) return undefined
  const { loopback, lock } = held
  const chosen = new Map<number, number>()
  for (const port of ports)
    for (const candidate of [port, port + SHIFT]) {
      const trial = await open(`${loopback}.${LOCK_HOST}`, candidate, (socket) => socket.destroy()).catch(
        () => undefined,
      )
      trial?.close()
      if (trial === undefined) continue
      chosen.set(port, candidate)
      break
    }
  const listeners = new Map<string, readonly Promise<Server | undefined>[]>()
  const end = (address: string) => {
    for (const server of listeners.get(address) ?? []) void server.then((each) => each?.close())
    listeners.delete(address)
  }
  return {
    loopback,
    ports: chosen,
    follow(addresses) {
      for (const address of listeners.keys()) if (!addresses.has(address)) end(address)
      for (const host of addresses) {
        if (listeners.has(host) || listeners.size >= ADDRESSES_MAXIMUM) continue
        const twin = `${loopback}${host.slice(SERVERS_PREFIX.length)}`
        listeners.set(
          host,
          [...chosen].map(([port, here]) =>
            open(twin, here, (socket) => join(socket, { host, port })).catch(() => undefined),
          ),
        )
      }
    },
    close() {
      for (const address of listeners.keys()) end(address)
      lock.close()
    },
  }
}

async function holdNetwork(): Promise<{ readonly loopback: string; readonly lock: Server } | undefined> {
  for (const loopback of NETWORKS) {
    const lock = await open(`${loopback}.${LOCK_HOST}`, LOCK_PORT, (socket) => socket.destroy()).catch(() => undefined)
    if (lock !== undefined) return { loopback, lock }
  }
  return undefined
}
