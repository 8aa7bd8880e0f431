/** HTTPS to the agents of the hosts: the certificate is pinned by its fingerprint, the caller known by the host's access token. */
import { createHash } from 'node:crypto'
import { request as startRequest, type RequestOptions } from 'node:https'
import type { IncomingMessage } from 'node:http'
import type { TLSSocket } from 'node:tls'
import { createInterface } from 'node:readline'
import { Unavailable } from '../../domain/problem.ts'
import type { Caches } from '../../kit/kube/caches.ts'
import { Secret } from '../../kit/kube/object.ts'
import type { Store } from '../../kit/kube/store.ts'
import type { Clock } from '../../kit/sys/clock.ts'
import { AGENT_ACCESS_SECRET_NAME, nodeNamespace } from '../../resources/instance.ts'
import { Node } from '../../resources/platform.ts'
import type { ConsoleLine } from './console.ts'
import type { AgentConnections } from './consoles.ts'

const CONNECT_TIMEOUT_MILLISECONDS = 5_000
/** The host says something every ten seconds; one that is silent for this long is lost. */
const SILENCE_MAXIMUM_MILLISECONDS = 30_000

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

  async function targetOf(node: string, instance: string): Promise<Target> {
    const endpoint = nodes.get({ name: node })?.status?.endpoint
    const secret = await store.get(Secret, { namespace: nodeNamespace(node), name: AGENT_ACCESS_SECRET_NAME })
    const encoded = (secret as { readonly data?: Readonly<Record<string, string>> } | undefined)?.data?.['token'] // a Secret's payload
    if (endpoint === undefined || encoded === undefined) throw new Unavailable(`the agent of ${node}`)
    return {
      url: new URL(`/v1/instances/${encodeURIComponent(instance)}/console`, endpoint.url), fingerprint: endpoint.certificateFingerprint.toLowerCase(),
      token: Buffer.from(encoded, 'base64').toString().trim(),
    }
  }

  return {
    async *follow(node, instance, signal) {
      const silence = new AbortController()
      const ended = AbortSignal.any([signal, silence.signal])
      const response = await ask(await targetOf(node, instance), { method: 'GET', signal: ended })
      if (response.statusCode !== 200) {
        response.resume()
        throw new Unavailable(`the console of ${instance}`)
      }
      let cancel = clock.after(SILENCE_MAXIMUM_MILLISECONDS, () => silence.abort())
      try {
        for await (const line of createInterface({ input: response, crlfDelay: Number.POSITIVE_INFINITY })) {
          cancel()
          cancel = clock.after(SILENCE_MAXIMUM_MILLISECONDS, () => silence.abort())
          yield JSON.parse(line) as ConsoleLine // the agent's protocol
        }
      } finally {
        cancel()
        response.destroy()
      }
    },

    async write(node, instance, bytes) {
      try {
        const target = await targetOf(node, instance)
        const response = await ask(target, { method: 'POST', headers: { 'content-type': 'application/octet-stream', 'content-length': String(bytes.length) } }, bytes)
        response.resume()
        if (response.statusCode === 204) return 'written'
        return response.statusCode === 409 || response.statusCode === 404 ? 'stopped' : 'unreachable'
      } catch {
        return 'unreachable'
      }
    },
  }
}

/** Sends nothing before the certificate has shown to be the pinned one. Resolves with the response's head. */
function ask({ url, fingerprint, token }: Target, options: RequestOptions, body?: Uint8Array): Promise<IncomingMessage> {
  return new Promise((resolve, reject) => {
    const request = startRequest(url, {
      ...options, agent: false, rejectUnauthorized: false, timeout: CONNECT_TIMEOUT_MILLISECONDS,
      headers: { ...options.headers, authorization: `Bearer ${token}` },
    })
    const send = (): void => {
      request.setTimeout(0)
      request.end(body)
    }
    request.once('socket', (socket) => {
      socket.setNoDelay(true)
      socket.once('secureConnect', () => {
        const certificate = (socket as TLSSocket).getPeerX509Certificate() // https gives TLS sockets
        const isPinned = certificate !== undefined && createHash('sha256').update(certificate.raw).digest('hex') === fingerprint
        if (isPinned) send()
        else request.destroy(new Error('the certificate of the agent is not the pinned one'))
      })
    })
    request.once('timeout', () => request.destroy(new Error('the agent did not answer in time')))
    request.once('response', resolve)
    request.once('error', reject)
  })
}
