/** Serves the apps of playgrounds. The host name of a request selects the playground, the Ingresses there select a
 *  service, and the tunnel connects to its node. It gives access to nothing else, and stores nothing. */
import { createServer, type IncomingMessage, request as send, type ServerResponse } from 'node:http'
import type { Socket } from 'node:net'
import type { Clock } from '../../../kit/sys/clock.ts'
import type { Logger } from '../../../kit/sys/log.ts'
import type { AppRoute, AppTarget } from '../../core/reading/guests/routes.ts'
import { closeNow, listen } from '../../../kit/sys/listen.ts'

export interface AppsListenerOptions {
  readonly host: string
  readonly port: number
  /** Domain of the names of playgrounds. */
  readonly domain: string
  /** Undefined when the playground is not here or not ready. */
  readonly playground: (name: string) => Playground | undefined
  readonly clock: Clock
  readonly log: Logger
}

export interface Playground {
  routes(): Promise<readonly AppRoute[]>
  /** Address of the route's service; undefined when it has none. */
  target(route: AppRoute): Promise<AppTarget | undefined>
  /** Socket of the tunnel to its node. */
  readonly tunnel: string
}

const CONNECTIONS_MAXIMUM = 512
const SILENCE_MILLISECONDS = 60_000
const CONNECT_MILLISECONDS = 15_000
/** Age at which Ingresses are read again. */
const FRESH_MILLISECONDS = 2_000
const [NOT_FOUND, BAD_GATEWAY] = [404, 502]
const HOP_HEADERS: readonly string[] = ['connection', 'keep-alive', 'proxy-connection', 'transfer-encoding', 'upgrade']

/** Selects the route of a request. A host name with a star matches one label, and the longest path wins. */
export function routeOf(routes: readonly AppRoute[], host: string, path: string): AppRoute | undefined {
  const isForHost = (route: AppRoute) =>
    route.host === host || (route.host.startsWith('*.') && host.split('.').slice(1).join('.') === route.host.slice(2))
  const isForPath = ({ path: prefix, isExact }: AppRoute) =>
    isExact ? path === prefix : path === prefix || path.startsWith(prefix.endsWith('/') ? prefix : `${prefix}/`)
  return routes
    .filter((route) => isForHost(route) && isForPath(route))
    .toSorted(
      (one, other) =>
        Number(one.host.startsWith('*')) - Number(other.host.startsWith('*')) ||
        other.path.length - one.path.length ||
        Number(other.isExact) - Number(one.isExact),
    )[0]
}

/** A connection to that address from the node. */
const throughTunnel = (socketPath: string, { address, port }: AppTarget) =>
  new Promise<Socket>((resolve, reject) => {
    const tunnel = send({ socketPath, method: 'CONNECT', path: `${address}:${port}`, timeout: CONNECT_MILLISECONDS })
    tunnel.once('connect', ({ statusCode }, socket) =>
      statusCode === 200 ? resolve(socket) : (socket.destroy(), reject(new Error(`the tunnel answers ${statusCode}`))),
    )
    tunnel.once('timeout', () => tunnel.destroy(new Error('the tunnel does not answer')))
    tunnel.once('error', reject)
    tunnel.end()
  })

/** Listens once this resolves. Returns the function that stops it. */
export async function openAppsListener(options: AppsListenerOptions): Promise<{ stop(): Promise<void> }> {
  const { host, port, domain, clock, log } = options
  const known = new Map<string, { readonly routes: readonly AppRoute[]; readonly at: number }>()
  const routesOf = async (name: string, playground: Playground): Promise<readonly AppRoute[]> => {
    const now = clock.monotonicMilliseconds()
    const before = known.get(name)
    if (before !== undefined && now - before.at < FRESH_MILLISECONDS) return before.routes
    const routes = await playground.routes()
    for (const [other, { at }] of known) if (now - at > FRESH_MILLISECONDS) known.delete(other)
    known.set(name, { routes, at: now })
    return routes
  }
  const serve = async (request: IncomingMessage, response: ServerResponse): Promise<void> => {
    const name = (request.headers.host ?? '').replace(/:\d+$/, '').toLowerCase()
    const label = name.endsWith(`.${domain}`)
      ? (name
          .slice(0, -domain.length - 1)
          .split('.')
          .at(-1) ?? '')
      : ''
    const playground = options.playground(label)
    if (playground === undefined) return end(response, NOT_FOUND, 'There is no such playground.')
    const [path = '/'] = (request.url ?? '/').split('?')
    const route = routeOf(await routesOf(label, playground), name, path)
    const target = route && (await playground.target(route))
    if (target === undefined) return end(response, NOT_FOUND, 'No Ingress of the playground is for this.')
    const socket = await throughTunnel(playground.tunnel, target)
    await forward(request, response, socket)
  }
  const server = createServer({ maxHeaderSize: 16_384 }, (request, response) => {
    serve(request, response).catch((error: unknown) => {
      log.info('a request to a playground failed', { error })
      end(response, BAD_GATEWAY, 'The service does not answer.')
    })
  })
  server.maxConnections = CONNECTIONS_MAXIMUM
  server.timeout = SILENCE_MILLISECONDS
  await listen(server, { host, port, exclusive: true })
  return {
    stop: () => closeNow(server),
  }
}

function end(response: ServerResponse, status: number, text: string): void {
  if (response.headersSent) return void response.destroy()
  response.writeHead(status, { 'content-type': 'text/plain; charset=utf-8' }).end(`${text}\n`)
}

/** Forwards one request on one connection unchanged, except for hop-by-hop headers. */
const forward = (request: IncomingMessage, response: ServerResponse, socket: Socket): Promise<void> =>
  new Promise((resolve, reject) => {
    const headers = Object.fromEntries(Object.entries(request.headers).filter(([name]) => !HOP_HEADERS.includes(name)))
    const address = request.socket.remoteAddress ?? ''
    const upstream = send(
      {
        method: request.method,
        path: request.url,
        timeout: SILENCE_MILLISECONDS,
        createConnection: () => socket,
        headers: { ...headers, connection: 'close', 'x-forwarded-for': address, 'x-forwarded-proto': 'http' },
      },
      (answer) => {
        const passed = Object.entries(answer.headers).filter(([name]) => !HOP_HEADERS.includes(name))
        response.writeHead(answer.statusCode ?? BAD_GATEWAY, Object.fromEntries(passed))
        answer.pipe(response)
        answer.once('error', reject)
        answer.once('end', resolve)
      },
    )
    upstream.once('timeout', () => upstream.destroy(new Error('no answer in time')))
    upstream.once('error', reject)
    response.once('close', () => upstream.destroy())
    request.pipe(upstream)
  })
