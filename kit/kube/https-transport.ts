/** The Transport over HTTPS/1.1: one pool of connections for requests and one for watches, so that watches, which
 *  occupy a connection each, never make a request wait. TCP keepalive detects a lost peer; the reflector handles
 *  watches without events. */
import { Agent, request as send } from 'undici'
import { defined } from '../../domain/defined.ts'
import { readLines, readText } from '../http/bounded.ts'
import type { Transport } from './transport.ts'

export interface ServerAccess {
  /** `https://host:port`, without a path. `http:` only for a server without authentication on loopback. */
  readonly url: string
  /** PEM; absent: the host's own trust store. */
  readonly ca?: string
  /** Name that the certificate must carry, when it is not the host of the URL. */
  readonly serverName?: string
  readonly isVerificationSkipped?: boolean
  /** PEM client certificate and key. */
  readonly certificate?: string
  readonly key?: string
  /** Impersonation: the user and groups that the server treats the requests as; it decides whether that is allowed. */
  readonly actsAs?: { readonly user: string; readonly groups: readonly string[] }
  /** The Authorization header of the next request; asked each time, as tokens are renewed. */
  readonly authorization?: () => Promise<string | undefined>
}

export interface HttpsTransport {
  readonly transport: Transport
  close(): Promise<void>
}

const REQUEST_CONNECTIONS_MAXIMUM = 32
const WATCH_CONNECTIONS_MAXIMUM = 128
const CONNECT_TIMEOUT_MILLISECONDS = 10_000
const KEEPALIVE_PROBE_MILLISECONDS = 30_000
/** Shorter than the 60 s or more that servers and load balancers keep idle connections. */
const IDLE_MILLISECONDS = 30_000
/** Of the largest page of a list, and of an event with the largest object. */
const [ANSWER_BYTES_MAXIMUM, LINE_BYTES_MAXIMUM] = [256 * 1024 ** 2, 16 * 1024 ** 2]

export function openHttpsTransport(access: ServerAccess): HttpsTransport {
  const connect = {
    timeout: CONNECT_TIMEOUT_MILLISECONDS,
    keepAlive: true,
    keepAliveInitialDelay: KEEPALIVE_PROBE_MILLISECONDS,
    ...defined({ ca: access.ca, cert: access.certificate, key: access.key, servername: access.serverName }),
    ...(access.isVerificationSkipped && { rejectUnauthorized: false }),
  }
  // The client enforces deadlines, by its clock; undici's own are disabled.
  const pool = { connect, keepAliveTimeout: IDLE_MILLISECONDS, pipelining: 1, headersTimeout: 0, bodyTimeout: 0 }
  const requests = new Agent({ ...pool, connections: REQUEST_CONNECTIONS_MAXIMUM })
  const watches = new Agent({ ...pool, connections: WATCH_CONNECTIONS_MAXIMUM })

  const { actsAs } = access
  const impersonation =
    actsAs === undefined ? {} : { 'impersonate-user': actsAs.user, 'impersonate-group': [...actsAs.groups] }
  const transport: Transport = async ({ method, path, headers, body, signal }) => {
    const authorization = await access.authorization?.()
    const response = await send(`${access.url}${path}`, {
      method,
      dispatcher: isWatch(path) ? watches : requests,
      headers: { ...headers, ...impersonation, ...defined({ authorization }) },
      ...defined({ body, signal }),
    })
    return {
      status: response.statusCode,
      headers: flat(response.headers),
      text: () => readText(response.body, ANSWER_BYTES_MAXIMUM),
      lines: () => readLines(response.body, LINE_BYTES_MAXIMUM),
    }
  }
  return { transport, close: async () => void (await Promise.all([requests.destroy(), watches.destroy()])) }
}

const isWatch = (path: string): boolean => /[?&]watch=(true|1)(&|$)/.test(path)

function flat(headers: Readonly<Record<string, string | string[] | undefined>>): Record<string, string> {
  const plain: Record<string, string> = {}
  for (const [name, value] of Object.entries(headers))
    if (value !== undefined) plain[name] = Array.isArray(value) ? value.join(', ') : value
  return plain
}
