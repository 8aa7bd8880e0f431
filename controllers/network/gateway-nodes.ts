/** The nodes that carry the traffic between a zone and the outside. */
import type { Caches } from '../../kit/kube/caches.ts'
import { Node } from '../../resources/node/index.ts'

/** Those with the role `network`, or all of them where none has it; sorted by name. */
export function gatewayNodes(caches: Caches, zone: string): readonly string[] {
  const alive = caches
    .of(Node)
    .list()
    .filter(({ spec, status }) => spec.zone === zone && (status?.state === 'ready' || status?.state === 'cordoned'))
  const ofNetwork = alive.filter(({ spec }) => spec.roles.includes('network'))
  return (ofNetwork.length > 0 ? ofNetwork : alive).map(({ metadata }) => metadata.name).sort()
}
