/** Number of API servers and members of etcd for a new control plane. */
import type { ControlPlaneOffer } from './control.ts'

const CLUSTERS_LEAST = 4

/** Three, as promised; one if the host is so small that it could never hold a few of those. Undefined when there is no
 *  memory left. */
export function replicasFor({
  memoryBytes,
  reservedBytes,
  bytesOfOne,
  bytesOfThree,
}: Pick<ControlPlaneOffer, 'memoryBytes' | 'reservedBytes' | 'bytesOfOne' | 'bytesOfThree'>): 1 | 3 | undefined {
  const isSmall = isSmallHost({ memoryBytes, bytesOfThree })
  if (reservedBytes + bytesOfNext({ memoryBytes, bytesOfOne, bytesOfThree }) > memoryBytes) return undefined
  return isSmall ? 1 : 3
}

const isSmallHost = ({ memoryBytes, bytesOfThree }: Pick<ControlPlaneOffer, 'memoryBytes' | 'bytesOfThree'>): boolean =>
  memoryBytes < CLUSTERS_LEAST * bytesOfThree

/** Memory for the next control plane. */
export const bytesOfNext = (offer: Pick<ControlPlaneOffer, 'memoryBytes' | 'bytesOfOne' | 'bytesOfThree'>): number =>
  isSmallHost(offer) ? offer.bytesOfOne : offer.bytesOfThree
