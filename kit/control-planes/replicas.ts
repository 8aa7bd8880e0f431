/** How many API servers and members of etcd a new control plane gets. */
import type { ControlPlaneOffer } from './control.ts'

const CLUSTERS_LEAST = 4

/** Three, as is promised; one where the host is so small that it could never hold a few of those. Undefined when it has
 *  no room left. */
export function replicasFor({
  memoryBytes,
  reservedBytes,
  bytesOfOne,
  bytesOfThree,
}: Pick<ControlPlaneOffer, 'memoryBytes' | 'reservedBytes' | 'bytesOfOne' | 'bytesOfThree'>): 1 | 3 | undefined {
  const isSmall = memoryBytes < CLUSTERS_LEAST * bytesOfThree
  const bytes = isSmall ? bytesOfOne : bytesOfThree
  if (reservedBytes + bytes > memoryBytes) return undefined
  return isSmall ? 1 : 3
}
