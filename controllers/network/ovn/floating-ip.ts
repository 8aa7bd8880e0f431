/** A floating IP in OVN: pure. The zone's router forwards it to a server's public address, or the customer's router
 *  forwards it to an interface in one of its networks. In the second case it is also the source address of that
 *  interface's traffic to the outside. */
import { natRouter, zoneEdgePort, zoneOutsidePort, zoneRouter } from './names.ts'
import type { Row } from './row.ts'

export interface Forwarding {
  readonly zone: string
  readonly id: string
  readonly address: string
  readonly target:
    | {
        readonly kind: 'public'
        readonly serverAddress: string
        /** The next hop of the zone's router to the outside; undefined where the zone has no route there. */
        readonly nextHop?: string | undefined
      }
    | {
        readonly kind: 'private'
        readonly routerId: string
        /** The router's own address in the public network, where the zone's router reaches it. */
        readonly routerAddress: string
        /** The address of the interface. */
        readonly address: string
      }
}

export function floatingIpRows({ zone, id, address, target }: Forwarding): readonly Row[] {
  const router = target.kind === 'public' ? zoneRouter(zone) : natRouter(target.routerId)
  return [
    {
      table: 'NAT',
      key: `floating-${id}`,
      parent: { ...router, column: 'nat' },
      columns: {
        type: target.kind === 'public' ? 'dnat' : 'dnat_and_snat',
        external_ip: address,
        logical_ip: target.kind === 'public' ? target.serverAddress : target.address,
      },
    },
    ...wayTo({ zone, id, address, target }),
  ]
}

/** Where the zone's router sends traffic for the address; the replies to the outside are translated back. */
function wayTo({ zone, id, address, target }: Forwarding): readonly Row[] {
  const [nexthop, port] =
    target.kind === 'public' ? [target.nextHop, zoneOutsidePort(zone)] : [target.routerAddress, zoneEdgePort(zone)]
  if (nexthop === undefined) return []
  return [
    {
      table: 'Logical_Router_Static_Route',
      key: `floating-${id}`,
      parent: { ...zoneRouter(zone), column: 'static_routes' },
      columns: { ip_prefix: `${address}/32`, nexthop, output_port: [port] },
    },
  ]
}
