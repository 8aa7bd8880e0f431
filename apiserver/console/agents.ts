/** HTTPS to the agents of the hosts. The client pins the agent's certificate by its fingerprint and authenticates with
 *  the host's access token. Connections for input are reused, so that a keystroke costs one round trip; each stream has
 *  a separate connection. */
import type { IncomingMessage } from 'node:http'
import { Agent } from 'node:https'
import { z } from 'zod'
import { Unavailable } from '../../domain/problem.ts'
import { readLines } from '../../kit/http/bounded.ts'
import { askPinned, type PinnedTarget } from '../../kit/http/pinned.ts'
import type { Caches } from '../../kit/kube/caches.ts'
import { Secret } from '../../kit/kube/object.ts'
import type { Store } from '../../kit/kube/store.ts'
import type { Clock } from '../../kit/sys/clock.ts'
import { AGENT_ACCESS_SECRET_NAME, nodeNamespace } from '../../resources/instance/index.ts'
import { Node } from '../../resources/node/index.ts'
import type { ConsoleLine } from './console.ts'
import type { AgentConnections } from './consoles.ts'
import { KeyedMutex } from '../../kit/sys/mutex.ts'

/** The host sends a line at least every ten seconds; a stream without one for this long is lost. */
const SILENCE_MAXIMUM_MILLISECONDS = 30_000
const TOKEN_FRESH_MILLISECONDS = 10_000
const INPUT_CONNECTIONS_MAXIMUM = 64
/** A line holds at most the tail of a console: 64 KiB in base64. */
const LINE_BYTES_MAXIMUM = 128 * 1024

/** From the request to the head of the answer. */
const INPUT_MILLISECONDS_MAXIMUM = 10_000

/** A line of the agent's protocol, as far as this side reads it. */
const Line: z.ZodType<ConsoleLine> = z.discriminatedUnion('type', [
  // agents of older versions send no count
  z.object({
    type: z.enum(['tail', 'output']),
    data: z.base64(),
    log: z
      .string()
      .regex(/^[a-z0-9]{0,64}$/)
      .default(''),
    end: z.int().min(0).default(0),
  }),
  z.object({ type: z.literal('status'), connected: z.boolean(), running: z.boolean() }),
  z.object({ type: z.enum(['ping', 'end']) }),
])

export interface AgentClientOptions {
  readonly store: Store
  readonly caches: Caches
  readonly clock: Clock
}

/** Opens connections on demand, with the node's token, and trusts only the certificate in the node's status. */
export function openAgents({ store, caches, clock }: AgentClientOptions): AgentConnections {
  const nodes = caches.of(Node)
  const tokens = openAccessTokens({ store, clock })
  const input = openInput({ clock, tokens })
  /** Typed bytes arrive in order. */
  const typing = new KeyedMutex()

  async function targetOf(node: string, instance: string): Promise<PinnedTarget> {
    const endpoint = nodes.get({ name: node })?.status?.endpoint
    if (endpoint === undefined) throw new Unavailable(`the agent of ${node}`)
    return {
      url: new URL(`/v1/instances/${encodeURIComponent(instance)}/console`, endpoint.url),
      fingerprint: endpoint.certificateFingerprint.toLowerCase(),
      token: await tokens.find(node),
    }
  }

  return {
    async *follow(node, instance, signal) {
      const silence = new AbortController()
      let cancel = () => {}
      const extend = () => {
        cancel()
        cancel = clock.after(SILENCE_MAXIMUM_MILLISECONDS, () => silence.abort())
      }
      extend()
      let response: IncomingMessage | undefined
      try {
        response = await askPinned(await targetOf(node, instance), {
          method: 'GET',
          agent: false,
          signal: AbortSignal.any([signal, silence.signal]),
        })
        if (response.statusCode === 401) tokens.forget(node)
        if (response.statusCode !== 200) throw new Unavailable(`the console of ${instance}`)
        for await (const line of readLines(response, LINE_BYTES_MAXIMUM)) {
          extend()
          yield Line.parse(JSON.parse(line))
        }
      } finally {
        cancel()
        response?.destroy()
      }
    },

    write: (node, instance, bytes) =>
      typing.run(instance, () => input.send(node, () => targetOf(node, instance), bytes)),
  }
}

/** Sends typed bytes over reused connections. */
function openInput({ clock, tokens }: { readonly clock: Clock; readonly tokens: AccessTokens }) {
  // A resumed TLS session shows no certificate, so none is resumed.
  const agent = new Agent({
    keepAlive: true,
    maxSockets: INPUT_CONNECTIONS_MAXIMUM,
    maxCachedSessions: 0,
    rejectUnauthorized: false,
  })
  return {
    async send(
      node: string,
      findTarget: () => Promise<PinnedTarget>,
      bytes: Uint8Array,
    ): Promise<'written' | 'stopped' | 'unreachable'> {
      const timeout = new AbortController()
      const cancel = clock.after(INPUT_MILLISECONDS_MAXIMUM, () => timeout.abort())
      try {
        const headers = { 'content-type': 'application/octet-stream', 'content-length': String(bytes.length) }
        const request = { method: 'POST', agent, headers, signal: timeout.signal } as const
        const response = await askPinned(await findTarget(), request, bytes)
        if (response.statusCode === 204) response.resume()
        else response.destroy() // the body is not needed, and may never end
        if (response.statusCode === 401) tokens.forget(node)
        if (response.statusCode === 204) return 'written'
        return response.statusCode === 409 || response.statusCode === 404 ? 'stopped' : 'unreachable'
      } catch {
        return 'unreachable'
      } finally {
        cancel()
      }
    },
  }
}

type AccessTokens = ReturnType<typeof openAccessTokens>

/** The access tokens of the hosts, each cached for ten seconds. */
function openAccessTokens({ store, clock }: Pick<AgentClientOptions, 'store' | 'clock'>) {
  const tokens = new Map<string, { readonly token: string; readonly until: number }>()
  return {
    /** Throws Unavailable when the host has no token. */
    async find(node: string): Promise<string> {
      const known = tokens.get(node)
      if (known !== undefined && clock.monotonicMilliseconds() < known.until) return known.token
      const encoded = (await store.get(Secret, { namespace: nodeNamespace(node), name: AGENT_ACCESS_SECRET_NAME }))
        ?.data?.['token']
      if (encoded === undefined) throw new Unavailable(`the access token of ${node}`)
      const token = Buffer.from(encoded, 'base64').toString().trim()
      tokens.set(node, { token, until: clock.monotonicMilliseconds() + TOKEN_FRESH_MILLISECONDS })
      return token
    },
    /** The host has refused the token. */
    forget: (node: string): void => void tokens.delete(node),
  }
}
