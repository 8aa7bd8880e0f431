/** Who may read /metrics: any user whom the management cluster allows to `get` that path, as with its own components.
 *  The bearer token is sent to a TokenReview, its user to a SubjectAccessReview. */
import { createHash } from 'node:crypto'
import type { MetricsAccess } from '../http/probes.ts'
import type { Clock } from '../sys/clock.ts'
import { reviewAccess, type Reviewing, reviewToken } from './reviews.ts'
import type { Transport } from './transport.ts'

/** A scraper requests every few seconds. */
const KEPT_MILLISECONDS = 5_000
const KEPT_MAXIMUM = 100

/** Asks the cluster once in KEPT_MILLISECONDS for each token. Throws Unavailable when the cluster does not answer. */
export function openMetricsAccess(
  kubernetes: Transport,
  clock: Clock,
): (authorization: string | undefined) => Promise<MetricsAccess> {
  const verdicts = new Map<string, { readonly until: number; readonly access: Promise<MetricsAccess> }>()
  return async (authorization) => {
    const token = /^bearer +(\S+)$/i.exec(authorization ?? '')?.[1]
    if (token === undefined) return 'unauthenticated'
    const now = clock.monotonicMilliseconds()
    const key = createHash('sha256').update(token).digest('base64')
    const known = verdicts.get(key)
    if (known !== undefined && known.until > now) return known.access
    if (verdicts.size >= KEPT_MAXIMUM) verdicts.clear()
    const access = review({ kubernetes, clock }, token)
    access.catch(() => verdicts.delete(key))
    verdicts.set(key, { until: now + KEPT_MILLISECONDS, access })
    return access
  }
}

async function review(reviewing: Reviewing, token: string): Promise<MetricsAccess> {
  const user = await reviewToken(reviewing, token)
  if (user === undefined) return 'unauthenticated'
  const attributes = { nonResourceAttributes: { path: '/metrics', verb: 'get' } }
  return (await reviewAccess(reviewing, user, attributes)) ? 'allowed' : 'forbidden'
}
