/** Connections to engines, and to the stores that tenants have moved to. A part of a body that a server has not read
 *  would become the start of the next request on its connection. So a connection that carried a body is reused only
 *  when the server has certainly read all of it, and only for requests of the same tenant. */
import { Agent, type ClientRequest } from 'node:http'
import { connect as connectPlain, isIP, type Socket } from 'node:net'
import type { Duplex } from 'node:stream'
import { connect as connectSecure } from 'node:tls'
import type { Upstream } from '../../integrations/object-storage/control.ts'
import { releaseRead } from './pass.ts'
import { readOn } from './read-on.ts'
import { slowDown } from './request.ts'

export interface Targets {
  /** The agent with connections to the tenant's engine, or to the store that it has moved to. The agent throws the
   *  Refusal when there are too many connections. */
  of(tenant: { readonly id: string }, at: Upstream | EngineSocket, hasBody: boolean): Agent
  stop(): void
}

/** Path of the socket of a tenant's engine. */
export interface EngineSocket {
  readonly socketPath: string
}

const CONNECTIONS_MAXIMUM = 4_096
/** Limits of idle connections: for each tenant at its engine, or at a store after bodies; and for all tenants together
 *  at a store, for connections without bodies. */
const FREE_OF_TENANT_MAXIMUM = 16
const FREE_MAXIMUM = 64
/** Shorter than the server's timeout, so that no request meets the closing. */
const FREE_MILLISECONDS = 10_000
/** Safety margin before the server's announced timeout. */
const AHEAD_MILLISECONDS = 1_000
/** Limit during a request, without a byte in either direction. */
const IDLE_MILLISECONDS = 120_000
const LIVE_AFTER_MILLISECONDS = 1_000

const clean = new WeakSet<Duplex>()
/** Announced timeouts of servers, in milliseconds. */
const announced = new WeakMap<Duplex, number>()

/** Marks that the server has read the body of the connection's current request. */
export function markRead(socket: Duplex | null): void {
  if (socket !== null) clean.add(socket)
}

/** Records the connection's timeout from the headers of a response: names and values alternate. */
export function noteAnnounced(socket: Duplex | null, rawHeaders: readonly string[]): void {
  for (let index = 0; index + 1 < rawHeaders.length; index += 2) {
    const name = rawHeaders[index] ?? ''
    if (name.length !== KEEP_ALIVE.length || name.toLowerCase() !== KEEP_ALIVE) continue
    const seconds = /^timeout=(\d+)/.exec(rawHeaders[index + 1] ?? '')?.[1]
    if (seconds !== undefined && socket !== null) announced.set(socket, Number(seconds) * 1_000)
  }
}

const KEEP_ALIVE = 'keep-alive'

interface Connection {
  readonly socket: Socket
  isFree: boolean
}

interface PoolOptions {
  readonly connect: () => Socket
  /** All connections then belong to one tenant. */
  readonly hasBodies: boolean
  readonly freeMaximum: number
  readonly whenEmpty: () => void
}

/** Connections to one server. Node's own pool creates a name from the options of each request, which takes a fifth of
 *  the time of a small request; this class replaces it. */
class Pool extends Agent {
  readonly #options: PoolOptions
  readonly #all = new Set<Connection>()
  /** The connection that was freed last is reused first. */
  readonly #free: Connection[] = []

  constructor(options: PoolOptions) {
    super({ keepAlive: true })
    this.#options = options
  }

  /** Node requests a connection through this. */
  addRequest(request: ClientRequest): void {
    const connection = this.#free.pop() ?? this.#open()
    connection.isFree = false
    connection.socket.setTimeout(IDLE_MILLISECONDS)
    request.onSocket(connection.socket)
  }

  override destroy(): void {
    for (const { socket } of this.#all) socket.destroy()
  }

  #open(): Connection {
    if (this.#all.size >= CONNECTIONS_MAXIMUM) throw slowDown()
    const socket = this.#options.connect()
    const connection: Connection = { socket, isFree: false }
    this.#all.add(connection)
    const endIfFree = () => {
      if (connection.isFree) socket.destroy()
    }
    // Unsolicited data would be taken for the next request's response.
    socket.on('data', endIfFree).on('end', endIfFree)
    socket.on('error', () => {}) // its request gets the error
    socket.on('timeout', () => socket.destroy(connection.isFree ? undefined : new Error('the engine does not answer')))
    socket.on('free', () => this.#keep(connection))
    socket.once('close', () => {
      this.#all.delete(connection)
      const index = this.#free.indexOf(connection)
      if (index >= 0) this.#free.splice(index, 1)
      if (this.#all.size === 0) this.#options.whenEmpty()
    })
    return connection
  }

  #keep(connection: Connection): void {
    const { socket } = connection
    const { hasBodies, freeMaximum } = this.#options
    const free = Math.min(FREE_MILLISECONDS, (announced.get(socket) ?? Infinity) - AHEAD_MILLISECONDS)
    // Each request must be marked separately.
    const isRead = clean.delete(socket) || !hasBodies
    if (!isRead || !socket.writable || free <= 0 || this.#free.length >= freeMaximum) return void socket.destroy()
    connection.isFree = true
    socket.setTimeout(free)
    this.#free.push(connection)
  }
}

/** Opens connections to a store, whose certificate may have a private authority. */
function connectTo({ url, authority }: Upstream): () => Socket {
  const { protocol, hostname, port } = new URL(url)
  const host = hostname.replaceAll(/[[\]]/g, '')
  const shared = { host, noDelay: true, keepAlive: true, keepAliveInitialDelay: LIVE_AFTER_MILLISECONDS }
  if (protocol !== 'https:') return () => connectPlain({ ...shared, port: Number(port || 80) })
  const secure = {
    ...shared,
    port: Number(port || 443),
    ALPNProtocols: ['http/1.1'],
    // The Host header stays that of the front end, for its signature; the certificate is checked for the store's name.
    ...(isIP(host) === 0 ? { servername: host } : {}),
    ...(authority ? { ca: authority } : {}),
  }
  let session: Buffer | undefined
  return () => {
    const socket = connectSecure({ ...secure, ...(session && { session }) })
    socket.on('session', (begun) => {
      session = begun
    })
    socket.once('close', (isBroken) => {
      if (isBroken) session = undefined
    })
    return socket
  }
}

export function openTargets(): Targets {
  const pools = new Map<string, Pool>()
  const open = (name: string, at: Upstream | EngineSocket, hasBodies: boolean): Pool => {
    const isEngine = 'socketPath' in at
    const connect = isEngine ? () => connectPlain(at.socketPath) : connectTo(at)
    const prepared = hasBodies ? () => readOn(connect()) : () => releaseRead(connect())
    const freeMaximum = hasBodies || isEngine ? FREE_OF_TENANT_MAXIMUM : FREE_MAXIMUM
    const pool = new Pool({ connect: prepared, hasBodies, freeMaximum, whenEmpty: () => void pools.delete(name) })
    pools.set(name, pool)
    return pool
  }
  return {
    of({ id }, at, hasBody) {
      const name =
        'socketPath' in at
          ? JSON.stringify([id, hasBody, at.socketPath])
          : JSON.stringify([hasBody ? id : '', at.url, at.authority])
      return pools.get(name) ?? open(name, at, hasBody)
    },
    stop() {
      for (const pool of pools.values()) pool.destroy()
    },
  }
}
