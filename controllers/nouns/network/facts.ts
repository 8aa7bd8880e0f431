/** The desired facts of a network for OVN: from its claims, its spec, and those of the router that it is attached
 *  to. */
import { type Gateway, effectiveRoutes, gatewayRoutes, withRoutes } from '../../../domain/network/rules.ts'
import { canonicalAddress } from '../../../domain/network/addresses.ts'
import type { NetworkClaim } from '../../../db/network/index.ts'
import type { RouterClaim } from '../../../db/router/index.ts'
import type { RouterSpec } from '../../../resources/router/index.ts'
import type { NetworkFacts } from '../../network/ovn/private-network.ts'
import type { NetworkObject } from './plan.ts'

/** The router that it is attached to and stays attached to, and the desired state of that router. */
export interface At {
  readonly claim: RouterClaim
  readonly spec: Pick<RouterSpec, 'staticRoutes'>
}

export function networkFactsOf(
  { metadata: { uid = '', name }, spec }: NetworkObject,
  claim: NetworkClaim,
  { at, gateway }: { readonly at: At | undefined; readonly gateway: Gateway | undefined },
): NetworkFacts {
  const others = at?.claim.networks.filter(({ networkId, isLeaving }) => networkId !== name && !isLeaving) ?? []
  return {
    zone: spec.zone,
    id: uid,
    ipv4Cidr: claim.ipv4Cidr,
    ipv6Prefix: claim.ipv6Prefix,
    dnsServers: spec.dnsServers.map(canonicalAddress),
    dhcpEnabled: spec.dhcpEnabled,
    gateway,
    ...(at === undefined
      ? gateway === undefined
        ? {}
        : // The edge of the network has a router for it.
          { router: { natEnabled: false, otherCidrs: [], staticRoutes: gatewayRoutes(gateway, { natEnabled: false }) } }
      : {
          router: {
            natEnabled: at.claim.natEnabled,
            otherCidrs: others.map(({ ipv4Cidr }) => ipv4Cidr),
            staticRoutes: withRoutes(
              effectiveRoutes(at.spec.staticRoutes, [claim, ...others]),
              gatewayRoutes(gateway, at.claim),
            ),
          },
        }),
  }
}
