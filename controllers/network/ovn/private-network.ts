/** A customer's private network in OVN: pure. It has its own switch, so that ranges of other tenants may overlap; DHCP
 *  options for its guests; and an address at which it answers DNS queries for the names of its guests. */
import { type Gateway, gatewayOf, type StaticRoute } from '../../../domain/network/rules.ts'
import { ACL_PRIORITY_MOST, GUEST_MTU, networkSwitch, ROUTER_OPTIONS, routerMac } from './names.ts'
import { networkPorts } from './router-port.ts'
import type { Row, RowRef } from './row.ts'
import { trackingRows } from './tracking.ts'

export interface NetworkFacts {
  readonly zone: string
  readonly id: string
  readonly ipv4Cidr: string
  readonly ipv6Prefix: string
  readonly dnsServers: readonly string[]
  /** When false, the network offers guests no DHCP. */
  readonly dhcpEnabled: boolean
  /** The network's NAT gateway, which also answers its DNS queries; none when absent. */
  readonly gateway?: Gateway | undefined
  /** The networks and routes behind the network's router; absent where it has none. */
  readonly router?:
    | {
        readonly natEnabled: boolean
        /** Ranges of the router's other networks. */
        readonly otherCidrs: readonly string[]
        readonly staticRoutes: readonly Pick<StaticRoute, 'destination' | 'nextHop'>[]
      }
    | undefined
}

/** Guests find each other by host name, alone and within this domain. */
export const PRIVATE_DOMAIN = 'internal'
/** Guests renew after half of it, and learn then of routers and routes that were added meanwhile. */
const LEASE_SECONDS = 600

export const dhcpOf = (networkId: string, family: 'ipv4' | 'ipv6'): RowRef => ({
  table: 'DHCP_Options',
  key: `${networkSwitch(networkId).key}-${family}`,
})

export function networkRows(facts: NetworkFacts): readonly Row[] {
  const { id, ipv4Cidr, ipv6Prefix, router } = facts
  const own = networkSwitch(id)
  const mac = routerMac(id)
  const guard = (name: string, priority: number, match: string): Row => ({
    table: 'ACL',
    key: `${own.key}-${name}`,
    parent: { ...own, column: 'acls' },
    columns: { direction: 'from-lport', priority, match, action: 'drop' },
  })
  return [
    { ...own, columns: { name: own.key } },
    guard('dhcp', ACL_PRIORITY_MOST, `eth.src != ${mac} && udp.src == {67, 547}`),
    // OVN lets its own DNS answers pass all firewalls, and recognises them by this port only.
    guard('names', ACL_PRIORITY_MOST - 1, 'udp.src == 53 && ct.new'),
    ...trackingRows(own),
    { ...dhcpOf(id, 'ipv4'), columns: { cidr: ipv4Cidr, options: facts.dhcpEnabled ? ipv4Options(facts, mac) : {} } },
    { ...dhcpOf(id, 'ipv6'), columns: { cidr: ipv6Prefix, options: facts.dhcpEnabled ? ipv6Options(facts, mac) : {} } },
    ...(router === undefined ? namesRouter(facts) : []),
  ]
}

/** A network without a router gets one that routes nowhere, at the router's address. DNS queries for guests are
 *  answered before they reach it. It rejects all others at once, so that guests ask their next resolver. */
function namesRouter({ id, ipv4Cidr: cidr, ipv6Prefix }: NetworkFacts): readonly Row[] {
  const own: RowRef = { table: 'Logical_Router', key: `names-${id}` }
  return [
    { ...own, columns: { name: own.key, options: ROUTER_OPTIONS } },
    ...networkPorts(own, { networkId: id, cidr, ipv4: gatewayOf(cidr), ipv6: gatewayOf(ipv6Prefix) }),
  ]
}

const setOf = (members: readonly string[]): string => `{${members.join(', ')}}`

/** The resolvers of guests: exactly those that the customer configures, for each family. Where there are none, it is
 *  the gateway that answers for all names, or the network's own address: OVN answers queries for names of its guests
 *  before they are sent there. */
function namesOption(
  { dnsServers }: Pick<NetworkFacts, 'dnsServers'>,
  isOfFamily: (server: string) => boolean,
  own: string,
): { readonly dns_server?: string } {
  const servers = dnsServers.length === 0 ? [own] : dnsServers.filter(isOfFamily)
  return servers.length === 0 ? {} : { dns_server: setOf(servers) }
}
const isIpv6 = (address: string): boolean => address.includes(':')

/** A guest that has classless routes ignores the router option: the default route is therefore among them. */
function ipv4Options(facts: NetworkFacts, mac: string): Readonly<Record<string, string>> {
  const { ipv4Cidr, gateway: edge, router } = facts
  const gateway = gatewayOf(ipv4Cidr)
  const routes = [
    ...(router?.otherCidrs ?? []),
    ...(router?.staticRoutes.map(({ destination }) => destination) ?? []),
    ...(router?.natEnabled === true ? ['0.0.0.0/0'] : []),
  ].filter((destination) => !isIpv6(destination))
  return {
    server_id: gateway,
    server_mac: mac,
    lease_time: String(LEASE_SECONDS),
    mtu: String(GUEST_MTU),
    ...namesOption(facts, (server) => !isIpv6(server), edge?.ipv4 ?? gateway),
    domain_name: `"${PRIVATE_DOMAIN}"`,
    ...(router?.natEnabled === true ? { router: gateway } : {}),
    ...(routes.length === 0
      ? {}
      : { classless_static_route: setOf([...new Set(routes)].map((destination) => `${destination},${gateway}`)) }),
  }
}

const ipv6Options = (facts: NetworkFacts, mac: string): Readonly<Record<string, string>> => ({
  server_id: mac,
  ...namesOption(facts, isIpv6, facts.gateway?.ipv6 ?? gatewayOf(facts.ipv6Prefix)),
  domain_search: `"${PRIVATE_DOMAIN}"`,
})
