/** Operations as a request or an operator writes them into the desired state of an object. */
import { newUuid, systemRandom } from '../../kit/sys/random.ts'
import type { OperationStanza } from '../../resources/kit/shapes.ts'
import { fastClock } from './cloud.ts'

/** An operation that is requested now by `user:1`, and whose deadline is after the seconds (600 unless given). */
export function requestedNow<Kind extends OperationStanza['kind']>(
  kind: Kind,
  {
    seconds = 600,
    ...more
  }: Partial<Pick<OperationStanza, 'id' | 'actor' | 'arguments'>> & { readonly seconds?: number } = {},
): OperationStanza & { readonly kind: Kind } {
  const now = fastClock.now()
  return {
    id: newUuid(systemRandom),
    kind,
    requestedAt: now.toISOString(),
    deadlineAt: new Date(now.getTime() + seconds * 1_000).toISOString(),
    actor: 'user:1',
    requestId: newUuid(systemRandom),
    ...more,
  }
}
