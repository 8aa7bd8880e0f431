/** How a router of OVN is joined to a switch: pure. A port on each side; each refers to the other by name. */
import { parseNetwork } from '../../../domain/network/addresses.ts'
import { type Gateway, NAT64_PREFIX } from '../../../domain/network/rules.ts'
import { GUEST_MTU, networkSwitch, routerMac } from './names.ts'
import type { Row, RowRef } from './row.ts'

/** A private network, as the router's port needs it. */
export interface PortNetwork {
  readonly networkId: string
  readonly cidr: string
  /** The router's own address in the network. */
  readonly ipv4: string
  readonly ipv6: string
  /** The network's NAT gateway, which also answers its DNS queries; none when absent. */
  readonly gateway?: Gateway | undefined
}

/** Each network has a /64. */
const IPV6_PREFIX = 64

/** The port of the router; `more` are further columns. */
export const routerPort = (
  holder: RowRef,
  name: string,
  mac: string,
  networks: readonly string[],
  more: Row['columns'] = {},
): Row => ({
  table: 'Logical_Router_Port',
  key: name,
  parent: { ...holder, column: 'ports' },
  columns: { name, mac, networks, ...more },
})

/** The port of the switch that is joined to a port of a router; `own` is what it is called on the switch. */
export const switchPort = (holder: RowRef, port: string, own = port): Row => ({
  table: 'Logical_Switch_Port',
  key: `${holder.key}-${own}`,
  parent: { ...holder, column: 'ports' },
  columns: {
    name: `${holder.key}-${own}`,
    type: 'router',
    addresses: ['router'],
    options: { 'router-port': port },
  },
})

/** Both ports of a private network. Router advertisements make its guests request an IPv6 address by DHCPv6. */
export function networkPorts(own: RowRef, { networkId, cidr, ipv4, ipv6, gateway }: PortNetwork): readonly Row[] {
  const name = `${own.key}-${networkId}`
  const networks = [`${ipv4}/${prefixLength(cidr)}`, `${ipv6}/${IPV6_PREFIX}`]
  return [
    routerPort(own, name, routerMac(networkId), networks, {
      // Other routers provide the default route, where guests have one.
      ipv6_ra_configs: {
        address_mode: 'dhcpv6_stateful',
        send_periodic: 'true',
        mtu: String(GUEST_MTU),
        router_preference: 'LOW',
        ...(gateway === undefined ? {} : { route_info: `HIGH-${NAT64_PREFIX}`, rdnss: gateway.ipv6 }),
      },
    }),
    switchPort(networkSwitch(networkId), name),
  ]
}

/** The prefix length of a network, from its text. */
export function prefixLength(cidr: string): number {
  const network = parseNetwork(cidr)
  if (network === undefined) throw new Error(`${cidr} is no network`)
  return network.prefix
}
