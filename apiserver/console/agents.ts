/** HTTPS to the agents of the hosts: the certificate is pinned by its fingerprint, the caller known by the host's access token.
 *  Connections for input are kept, so that a keystroke costs one round trip; a stream has a connection of its own. */
import { createHash } from 'node:crypto'
import { Agent, request as startRequest, type RequestOptions } from 'node:https'
import type { IncomingMessage } from 'node:http'
import { createInterface } from 'node:readline'
import type { Socket } from 'node:net'
import { TLSSocket } from 'node:tls'
import { Unavailable } from '../../domain/problem.ts'
import type { Caches } from '../../kit/kube/caches.ts'
import { Secret } from '../../kit/kube/object.ts'
import type { Store } from '../../kit/kube/store.ts'
import type { Clock } from '../../kit/sys/clock.ts'
import { AGENT_ACCESS_SECRET_NAME, nodeNamespace } from '../../resources/instance.ts'
import { Node } from '../../resources/platform.ts'
import type { ConsoleLine } from './console.ts'
import type { AgentConnections } from './consoles.ts'

const ANSWER_TIMEOUT_MILLISECONDS = 5_000
/** The host says something every ten seconds; one that is silent for this long is lost. */
const SILENCE_MAXIMUM_MILLISECONDS = 30_000
const TOKEN_FRESH_MILLISECONDS = 10_000
const INPUT_CONNECTIONS_MAXIMUM = 64

export interface AgentOptions {
  readonly store: Store
  readonly caches: Caches
  readonly clock: Clock
}

interface Target {
  readonly url: URL
  readonly fingerprint: string
  readonly token: string
}

export function openAgents({ store, caches, clock }: AgentOptions): AgentConnections {
  const nodes = caches.of(Node)
  const tokens = new Map<string, { readonly token: string; readonly until: number }>()
  // A resumed TLS session shows no certificate, so none is resumed.
  const kept = new Agent({ keepAlive: true, maxSockets: INPUT_CONNECTIONS_MAXIMUM, maxCachedSessions: 0, rejectUnauthorized: false })
  /** The last input on its way to each instance: what is typed arrives in the order in which it came. */
  const lasts = new Map<string, Promise<unknown>>()

  async function tokenOf(node: string): Promise<string> {
    const known = tokens.get(node)
    if (known !== undefined && clock.monotonicMilliseconds() < known.until) return known.token
    const secret = await store.get(Secret, { namespace: nodeNamespace(node), name: AGENT_ACCESS_SECRET_NAME })
    const encoded = (secret as { readonly data?: Readonly<Record<string, string>> } | undefined)?.data?.['token'] // a Secret's payload
    if (encoded === undefined) throw new Unavailable(`the access token of ${node}`)
    const token = Buffer.from(encoded, 'base64').toString().trim()
    tokens.set(node, { token, until: clock.monotonicMilliseconds() + TOKEN_FRESH_MILLISECONDS })
    return token
  }

  async function targetOf(node: string, instance: string): Promise<Target> {
    const endpoint = nodes.get({ name: node })?.status?.endpoint
    if (endpoint === undefined) throw new Unavailable(`the agent of ${node}`)
    return {
      url: new URL(`/v1/instances/${encodeURIComponent(instance)}/console`, endpoint.url), fingerprint: endpoint.certificateFingerprint.toLowerCase(), token: await tokenOf(node),
    }
  }

  async function send(node: string, instance: string, bytes: Uint8Array): Promise<'written' | 'stopped' | 'unreachable'> {
    try {
      const headers = { 'content-type': 'application/octet-stream', 'content-length': String(bytes.length) }
      const response = await ask(await targetOf(node, instance), { method: 'POST', agent: kept, headers }, bytes)
      response.resume()
      if (response.statusCode === 401) tokens.delete(node)
      if (response.statusCode === 204) return 'written'
      return response.statusCode === 409 || response.statusCode === 404 ? 'stopped' : 'unreachable'
    } catch {
      return 'unreachable'
    }
  }

  return {
    async *follow(node, instance, signal) {
      const silence = new AbortController()
      const response = await ask(await targetOf(node, instance), { method: 'GET', agent: false, signal: AbortSignal.any([signal, silence.signal]) })
      let cancel = () => {}
      const heard = () => {
        cancel()
        cancel = clock.after(SILENCE_MAXIMUM_MILLISECONDS, () => silence.abort())
      }
      try {
        if (response.statusCode === 401) tokens.delete(node)
        if (response.statusCode !== 200) throw new Unavailable(`the console of ${instance}`)
        heard()
        for await (const line of createInterface({ input: response, crlfDelay: Number.POSITIVE_INFINITY })) {
          heard()
          yield JSON.parse(line) as ConsoleLine // the agent's protocol
        }
      } finally {
        cancel()
        response.destroy()
      }
    },

    write(node, instance, bytes) {
      const sent = (lasts.get(instance) ?? Promise.resolve()).then(() => send(node, instance, bytes))
      lasts.set(instance, sent)
      void sent.finally(() => {
        if (lasts.get(instance) === sent) lasts.delete(instance)
      })
      return sent
    },
  }
}

/** Connections whose certificate has shown to be the pinned one. */
const pinned = new WeakMap<Socket, string>()

/** Sends nothing before the certificate has shown to be the pinned one. Resolves with the response's head. */
function ask({ url, fingerprint, token }: Target, options: RequestOptions, body?: Uint8Array): Promise<IncomingMessage> {
  return new Promise((resolve, reject) => {
    const request = startRequest(url, { ...options, rejectUnauthorized: false, timeout: ANSWER_TIMEOUT_MILLISECONDS, headers: { ...options.headers, authorization: `Bearer ${token}` } })
    const sendOn = (socket: Socket): void => {
      if (pinned.get(socket) === fingerprint) request.end(body)
      else request.destroy(new Error('the certificate of the agent is not the pinned one'))
    }
    request.once('socket', (socket) => {
      if (!(socket instanceof TLSSocket) || pinned.has(socket)) return sendOn(socket)
      socket.setNoDelay(true)
      socket.once('secureConnect', () => {
        const certificate = socket.getPeerX509Certificate()
        if (certificate !== undefined) pinned.set(socket, createHash('sha256').update(certificate.raw).digest('hex'))
        sendOn(socket)
      })
    })
    request.once('timeout', () => request.destroy(new Error('the agent did not answer in time')))
    request.once('response', (response) => {
      request.setTimeout(0)
      resolve(response)
    })
    request.once('error', reject)
  })
}
