/** Connections to the engine, and to the stores that tenants have moved to. What a server has left of a body would be
 *  the beginning of the next request on its connection. So one that has carried a body goes on only when the server has
 *  certainly read all of it, and with requests of the same tenant. */
import {
  Agent,
  type AgentOptions,
  type ClientRequestArgs,
  request as httpRequest,
  type RequestOptions as PlainOptions,
} from 'node:http'
import { Agent as SecureAgent, request as httpsRequest, type RequestOptions } from 'node:https'
import { isIP, type Socket } from 'node:net'
import type { Duplex } from 'node:stream'
import type { Upstream } from '../../kit/object-storage/control.ts'
import { releaseRead } from './pass.ts'
import { readOn } from './read-on.ts'

/** Where a request goes. */
export interface Target {
  readonly send: typeof httpRequest
  readonly options: RequestOptions
}

export interface Targets {
  /** The engine, or the store that a tenant has moved to. */
  of(tenant: { readonly id: string; readonly upstream?: Upstream | undefined }, hasBody: boolean): Target
  stop(): void
}

const CONNECTIONS_MAXIMUM = 4_096
/** Of each tenant, where they have carried bodies; and of all of them where they have not. */
const FREE_OF_TENANT_MAXIMUM = 16
const FREE_MAXIMUM = 64
/** Before the server closes it, and a request meets that. */
const FREE_MILLISECONDS = 10_000

const clean = new WeakSet<Duplex>()

/** The server has read the body of the request that the connection is busy with. */
export function markRead(socket: Duplex | null): void {
  if (socket !== null) clean.add(socket)
}

/** Each request has to be marked anew. */
const takeMark = (socket: Duplex): boolean => clean.delete(socket)

interface OfTenant {
  readonly tenant?: string
}
const nameWith = (name: string, options: OfTenant = {}): string => `${name}:${options.tenant ?? ''}`

/** Of a server without TLS: Node reads one out of the headers of each request where it is not told. */
const NO_NAME = ''

/** Nobody waits for a connection of these: that would be one which has carried a body. */
const KEPT_AFTER_BODIES: AgentOptions = {
  ...{ keepAlive: true, maxFreeSockets: FREE_OF_TENANT_MAXIMUM, timeout: FREE_MILLISECONDS },
}
const KEPT: AgentOptions = {
  ...{ keepAlive: true, maxSockets: CONNECTIONS_MAXIMUM, maxFreeSockets: FREE_MAXIMUM, timeout: FREE_MILLISECONDS },
}

class PlainAgent extends Agent {
  override createConnection(...given: Parameters<Agent['createConnection']>): Duplex | null | undefined {
    return releaseRead(super.createConnection(...given) as Socket) // as Node says of its own
  }
}
class SecurePlainAgent extends SecureAgent {
  override createConnection(...given: Parameters<SecureAgent['createConnection']>): Duplex | null | undefined {
    return releaseRead(super.createConnection(...given) as Socket) // as Node says of its own
  }
}

class BodyAgent extends Agent {
  override createConnection(...given: Parameters<Agent['createConnection']>): Duplex | null | undefined {
    return readOn(super.createConnection(...given) as Socket) // as Node says of its own
  }

  override getName(options?: ClientRequestArgs & OfTenant): string {
    return nameWith(super.getName(options), options)
  }

  override keepSocketAlive(socket: Duplex): boolean {
    return takeMark(socket) && asNodeSays(super.keepSocketAlive(socket))
  }
}
class SecureBodyAgent extends SecureAgent {
  override createConnection(...given: Parameters<SecureAgent['createConnection']>): Duplex | null | undefined {
    return readOn(super.createConnection(...given) as Socket) // as Node says of its own
  }

  override getName(options?: RequestOptions & OfTenant): string {
    return nameWith(super.getName(options), options)
  }

  override keepSocketAlive(socket: Duplex): boolean {
    return takeMark(socket) && asNodeSays(super.keepSocketAlive(socket))
  }
}

/** Its types say that it answers nothing. */
const asNodeSays = (answer: unknown): boolean => answer === true

function newAgent(hasBody: boolean, isSecure: boolean, authority: string | null | undefined): Agent {
  const ca = authority ? { ca: authority } : {}
  if (isSecure)
    return hasBody ? new SecureBodyAgent({ ...KEPT_AFTER_BODIES, ...ca }) : new SecurePlainAgent({ ...KEPT, ...ca })
  return hasBody ? new BodyAgent(KEPT_AFTER_BODIES) : new PlainAgent(KEPT)
}

export function openTargets(socketPath: string): Targets {
  const agents = new Map<string, Agent>()
  return {
    of({ id, upstream }, hasBody) {
      const url = upstream && new URL(upstream.url)
      const isSecure = url?.protocol === 'https:'
      const ca = isSecure ? upstream?.authority : null
      const name = url === undefined ? String(hasBody) : JSON.stringify([url.origin, ca, hasBody])
      const agent = agents.get(name) ?? newAgent(hasBody, isSecure, ca)
      agents.set(name, agent)
      const shared: PlainOptions & OfTenant = { agent, tenant: id }
      if (url === undefined) return { send: httpRequest, options: { ...shared, socketPath, servername: NO_NAME } }
      const { hostname, port } = url
      const host = hostname.replaceAll(/[[\]]/g, '')
      // The name in the request stays that of the door, for its signature; the certificate is that of the store.
      const servername = isSecure && isIP(host) === 0 ? { servername: host } : {}
      const options = { ...shared, host, ...(port !== '' && { port }), ...servername }
      return { send: isSecure ? httpsRequest : httpRequest, options }
    },
    stop() {
      for (const agent of agents.values()) agent.destroy()
    },
  }
}
