/** The traffic of guests, read from the agents over HTTPS. */
import { Agent } from 'node:https'
import { z } from 'zod'
import { Unavailable } from '../../../domain/problem.ts'
import { readWhole } from '../../../kit/http/bounded.ts'
import { askPinned } from '../../../kit/http/pinned.ts'
import { Secret } from '../../../kit/kube/object.ts'
import type { Store } from '../../../kit/kube/store.ts'
import type { Clock } from '../../../kit/sys/clock.ts'
import {
  AGENT_ACCESS_SECRET_NAME,
  GuestUsage,
  nodeNamespace,
  USAGE_FIELDS,
  USAGE_FIELDS_HEADER,
} from '../../../resources/instance/index.ts'
import type { UsageSource } from './collector.ts'

const Answer = z.strictObject({ guests: z.array(GuestUsage) })
const CONNECTIONS_MAXIMUM = 64
/** Enough for more than ten thousand guests. */
const ANSWER_BYTES_MAXIMUM = 8 * 1024 * 1024
/** From the request to the last byte of the answer. */
const ANSWER_MILLISECONDS_MAXIMUM = 10_000

/** Asks each agent itself, and trusts only the certificate of its node. Throws Unavailable when one does not answer. */
export function usageFromAgents({ store, clock }: { readonly store: Store; readonly clock: Clock }): UsageSource {
  // A resumed TLS session shows no certificate, so none is resumed.
  const keepAliveAgent = new Agent({
    keepAlive: true,
    maxSockets: CONNECTIONS_MAXIMUM,
    maxCachedSessions: 0,
    rejectUnauthorized: false,
  })
  const tokens = new Map<string, string>()

  async function tokenOf(node: string): Promise<string> {
    const encoded = (await store.get(Secret, { namespace: nodeNamespace(node), name: AGENT_ACCESS_SECRET_NAME }))
      ?.data?.['token']
    if (encoded === undefined) throw new Unavailable(`the access token of ${node}`)
    return Buffer.from(encoded, 'base64').toString().trim()
  }

  return async ({ metadata: { name }, status }) => {
    const { endpoint } = status ?? {}
    if (endpoint === undefined) throw new Unavailable(`the agent of ${name}`)
    const token = tokens.get(name) ?? (await tokenOf(name))
    tokens.set(name, token)
    const target = {
      url: new URL('/v1/usage', endpoint.url),
      fingerprint: endpoint.certificateFingerprint.toLowerCase(),
      token,
    }
    const late = new AbortController()
    const cancel = clock.after(ANSWER_MILLISECONDS_MAXIMUM, () => late.abort())
    try {
      const headers = { [USAGE_FIELDS_HEADER]: USAGE_FIELDS }
      const response = await askPinned(target, { method: 'GET', agent: keepAliveAgent, signal: late.signal, headers })
      const body = await readWhole(response, ANSWER_BYTES_MAXIMUM)
      if (response.statusCode === 200) return Answer.parse(JSON.parse(body.toString())).guests
    } finally {
      cancel()
    }
    tokens.delete(name) // it may have been created again
    throw new Unavailable(`the agent of ${name}`)
  }
}
