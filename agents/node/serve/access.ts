/** Authenticates callers of the agent: they must have the token of the Secret `agent-access` in the node's namespace.
 */
import { createHash, timingSafeEqual } from 'node:crypto'
import { Secret } from '../../../kit/kube/object.ts'
import type { Store } from '../../../kit/kube/store.ts'
import type { Clock } from '../../../kit/sys/clock.ts'
import { AGENT_ACCESS_SECRET_NAME } from '../../../resources/instance/index.ts'

/** The Secret is read again at this age. An unknown token does not cause more reads. */
const FRESH_MILLISECONDS = 60_000
const REREAD_MILLISECONDS = 1_000

export interface AccessOptions {
  readonly store: Store
  readonly namespace: string
  readonly clock: Clock
}

/** Checks whether an Authorization header has the token. Throws when the Secret cannot be read. */
export function openAccess({
  store,
  namespace,
  clock,
}: AccessOptions): (authorization: string | undefined) => Promise<boolean> {
  let digest: Buffer | undefined
  let readAt = Number.NEGATIVE_INFINITY

  async function refresh(olderThanMilliseconds: number): Promise<void> {
    if (clock.monotonicMilliseconds() - readAt < olderThanMilliseconds) return
    const encoded = (await store.get(Secret, { namespace, name: AGENT_ACCESS_SECRET_NAME }))?.data?.['token']
    readAt = clock.monotonicMilliseconds()
    digest = encoded === undefined ? undefined : sha256(Buffer.from(encoded, 'base64').toString('utf8').trim())
  }

  return async (authorization) => {
    const token = /^Bearer (\S+)$/.exec(authorization ?? '')?.[1]
    if (token === undefined) return false
    const matches = () => digest !== undefined && timingSafeEqual(digest, sha256(token))
    await refresh(FRESH_MILLISECONDS)
    if (matches()) return true
    await refresh(REREAD_MILLISECONDS)
    return matches()
  }
}

const sha256 = (text: string): Buffer => createHash('sha256').update(text).digest()
