/** The public network of a zone in OVN: pure. The rows of the zone and the rows of each server are separate, so that a
 *  change of one server costs no other. There is one switch for the guests, with a port for the metadata service that
 *  every host has locally, one router behind it, another switch for the routers of customers, and the connection to the
 *  outside. An IPv4 address belongs to its guest on the switch; an IPv6 prefix is routed to its guest, so that no two
 *  guests share one. Guests can use only their own addresses: the switch drops packets from any other. It also drops
 *  the messages of DHCP servers, because OVN itself is the only one. No rule of OVN can drop router advertisements, so
 *  hosts drop them before they reach the switch. */
import { parseAddress, formatAddress } from '../../../domain/network/addresses.ts'
import { METADATA_ADDRESS, METADATA_MAC, metadataPort } from '../../../domain/network/metadata-service.ts'
import {
  ACL_PRIORITY_MOST,
  edgeSwitch,
  GUEST_MTU,
  guestPort,
  LEASE_SECONDS,
  linkLocalOf,
  chassisOptions,
  publicSwitch,
  ROUTER_OPTIONS,
  routerMac,
  zoneEdgePort,
  zoneOutsidePort,
  zoneRouter,
  zoneRouterPort,
} from '../ovn/names.ts'
import { prefixRoute } from '../ovn/prefix-route.ts'
import { refer, type Row, type RowRef } from '../ovn/row.ts'
import { trackingRows } from '../ovn/tracking.ts'
import { routerPort, switchPort } from '../ovn/router-port.ts'

export const LINK_LOCAL = { prefix: 16, gateway: '169.254.0.1', cidr: '169.254.0.0/16' } as const

export interface PublicPort {
  /** Name of the Instance, under which its host attaches the port. */
  readonly name: string
  readonly macAddress: string
  readonly ipv4?:
    | { readonly address: string; readonly prefix: number; readonly gateway: string; readonly cidr: string }
    | undefined
  /** Every prefix that is routed to the guest. */
  readonly ipv6Prefixes: readonly string[]
  /** Addresses that the guest shares with other machines of its owner, one machine at a time. */
  readonly shared?: readonly string[] | undefined
  /** The node that runs it and, during a migration, the target node. */
  readonly nodes: readonly string[]
}

/** The connection of the zone's router to the routers around it. */
export interface Outside {
  /** The name by which hosts know the physical network. */
  readonly physicalNetwork: string
  readonly addresses: readonly string[]
  readonly gateways: readonly string[]
  /** Resolvers that servers with an IPv4 address receive by DHCP. */
  readonly dnsServers?: readonly string[] | undefined
}

/** An IPv4 network whose addresses are in the public network: they reach the outside through the gateway. */
export interface Subnet {
  readonly cidr: string
  readonly prefix: number
  readonly gateway: string
  /** Its addresses are for servers, which receive them by DHCP. */
  readonly isForServers: boolean
}

export interface PublicNetwork {
  readonly zone: string
  readonly outside?: Outside | undefined
  readonly subnets: readonly Subnet[]
  /** Nodes that may carry the traffic to the outside; the first that is alive does. */
  readonly gatewayNodes: readonly string[]
}

/** Routers send advertisements only where they have a network beside the link-local one; no guest gets an address of
 *  that network. Guests with a public address reach the metadata service through the IPv4 network. */
const ROUTER_NETWORKS = ['fe80::1/64', 'fd73:7663:636c::1/64', `${LINK_LOCAL.gateway}/${LINK_LOCAL.prefix}`]
const GATEWAY_PRIORITY_MOST = 100

export function rowsOf(network: PublicNetwork): readonly Row[] {
  const { zone, outside } = network
  const [own, router, port] = [publicSwitch(zone), zoneRouter(zone), zoneRouterPort(zone)]
  return [
    { ...own, columns: { name: own.key } },
    {
      table: 'ACL',
      key: `${own.key}-dhcp`,
      parent: { ...own, column: 'acls' },
      columns: {
        direction: 'from-lport',
        priority: ACL_PRIORITY_MOST,
        // No guest can send from the hardware address of the router.
        match: `eth.src != ${routerMac(`${zone}/public`)} && udp.src == {67, 547}`,
        action: 'drop',
      },
    },
    ...trackingRows(own),
    { ...router, columns: { name: router.key, options: ROUTER_OPTIONS } },
    routerPort(router, port, routerMac(`${zone}/public`), routerNetworksOf(network), {
      ipv6_ra_configs: { address_mode: 'dhcpv6_stateful', send_periodic: 'true', mtu: String(GUEST_MTU) },
    }),
    switchPort(own, port, 'router'),
    {
      table: 'Logical_Switch_Port',
      key: `${own.key}-metadata`,
      parent: { ...own, column: 'ports' },
      columns: { name: metadataPort(zone), type: 'localport', addresses: [`${METADATA_MAC} ${METADATA_ADDRESS}`] },
    },
    ...dhcpRows(network),
    ...edgeRows(network, router),
    ...(outside === undefined ? [] : outsideRows(network, outside, router)),
  ]
}

/** The DHCP options of servers. */
function dhcpRows({ zone, outside, subnets }: PublicNetwork): readonly Row[] {
  return [
    ...[LINK_LOCAL, ...subnets.filter(({ isForServers }) => isForServers)].map(
      ({ cidr, gateway }): Row => ({
        ...dhcpOf(zone, cidr),
        columns: {
          cidr,
          options: {
            ...(cidr === LINK_LOCAL.cidr ? {} : { router: gateway }),
            server_id: gateway,
            server_mac: routerMac(`${zone}/public`),
            ...resolversOf(outside, 'ipv4'),
            lease_time: String(LEASE_SECONDS),
            mtu: String(GUEST_MTU),
          },
        },
      }),
    ),
    {
      ...dhcpv6Of(zone),
      columns: {
        // Each server has its own prefix: DHCPv6 offers the first address of its port.
        cidr: '::/0',
        options: { server_id: routerMac(`${zone}/public`), ...resolversOf(outside, 'ipv6') },
      },
    },
  ]
}

/** Networks that are not for servers are behind routers of customers, or forwarded to servers on the way in. */
function edgeRows({ zone, subnets }: PublicNetwork, router: RowRef): readonly Row[] {
  const networks = subnets.filter(({ isForServers }) => !isForServers)
  if (networks.length === 0) return []
  const [own, port] = [edgeSwitch(zone), zoneEdgePort(zone)]
  return [
    { ...own, columns: { name: own.key } },
    routerPort(
      router,
      port,
      routerMac(`${zone}/edge`),
      networks.map(({ gateway, prefix }) => `${gateway}/${prefix}`),
    ),
    switchPort(own, port, 'router'),
  ]
}

const dhcpOf = (zone: string, cidr: string): RowRef => ({ table: 'DHCP_Options', key: `dhcp-${zone}-${cidr}` })

/** The DHCPv6 options of servers: those whose image reads no metadata request their IPv6 address, because router
 *  advertisements tell them to use DHCPv6. */
const dhcpv6Of = (zone: string): RowRef => ({ table: 'DHCP_Options', key: `dhcp-${zone}-ipv6` })

/** Each gateway is an address of the router. */
const routerNetworksOf = ({ subnets }: PublicNetwork): readonly string[] => [
  ...ROUTER_NETWORKS,
  ...subnets.flatMap(({ isForServers, gateway, prefix }) => (isForServers ? [`${gateway}/${prefix}`] : [])),
]

function resolversOf(outside: Outside | undefined, family: 'ipv4' | 'ipv6'): Readonly<Record<string, string>> {
  const resolvers = outside?.dnsServers?.filter((address) => address.includes(':') === (family === 'ipv6')) ?? []
  return resolvers.length === 0 ? {} : { dns_server: `{${resolvers.join(', ')}}` }
}

/** The rows of a server in the public network of its zone. */
export function portRows(
  zone: string,
  { name, macAddress, ipv4, ipv6Prefixes, shared = [], nodes }: PublicPort,
): readonly Row[] {
  const linkLocal = linkLocalOf(macAddress)
  const own = [macAddress, ...(ipv4 === undefined ? [] : [ipv4.address])]
  return [
    {
      ...guestPort(name),
      parent: { ...publicSwitch(zone), column: 'ports' },
      columns: {
        name,
        type: '',
        addresses: [[...own, ...ipv6Prefixes.map(firstOf), linkLocal].join(' ')],
        port_security: [[...own, linkLocal, ...ipv6Prefixes, ...shared].join(' ')],
        options: chassisOptions(nodes),
        dhcpv4_options: refer(...(ipv4 === undefined ? [] : [dhcpOf(zone, ipv4.cidr)])),
        dhcpv6_options: refer(...(ipv6Prefixes.length === 0 ? [] : [dhcpv6Of(zone)])),
      },
    },
    ...ipv6Prefixes.map((prefix) => prefixRoute(zone, prefix, linkLocal)),
  ]
}

/** A server that reaches a floating IP of its own zone gets the address of the zone's router as its source. Otherwise
 *  the reply would take another path than the request, and come from an address that the server never contacted. */
function insideRows({ zone, subnets }: PublicNetwork, { addresses }: Outside, router: RowRef): readonly Row[] {
  const floating = subnets.filter(({ isForServers }) => !isForServers)
  const [own] = addresses.find((address) => !address.includes(':'))?.split('/') ?? []
  if (own === undefined || floating.length === 0) return []
  const set: RowRef = { table: 'Address_Set', key: `floating_${zone.replaceAll('-', '_')}` }
  return [
    { ...set, columns: { name: set.key, addresses: floating.map(({ cidr }) => cidr) } },
    ...subnets.map(
      ({ cidr }): Row => ({
        table: 'NAT',
        key: `inside-${zone}-${cidr}`,
        parent: { ...router, column: 'nat' },
        columns: { type: 'snat', external_ip: own, logical_ip: cidr, allowed_ext_ips: refer(set) },
      }),
    ),
  ]
}

function outsideRows(network: PublicNetwork, outside: Outside, router: RowRef): readonly Row[] {
  const { zone, gatewayNodes } = network
  const { physicalNetwork, addresses, gateways } = outside
  const port = zoneOutsidePort(zone)
  const own: RowRef = { table: 'Logical_Switch', key: `outside-${zone}` }
  return [
    { ...own, columns: { name: own.key } },
    {
      table: 'Logical_Switch_Port',
      key: `${own.key}-wire`,
      parent: { ...own, column: 'ports' },
      columns: {
        name: `${own.key}-wire`,
        type: 'localnet',
        addresses: ['unknown'],
        options: { network_name: physicalNetwork },
      },
    },
    switchPort(own, port, 'router'),
    routerPort(router, port, routerMac(`${zone}/outside`), addresses, {
      // A sender of larger packets gets an error; on the path to a guest nothing else would report it.
      options: { gateway_mtu: String(GUEST_MTU) },
    }),
    ...gatewayNodes.slice(0, GATEWAY_PRIORITY_MOST).map(
      (node, index): Row => ({
        table: 'Gateway_Chassis',
        key: `${port}-${node}`,
        parent: { table: 'Logical_Router_Port', key: port, column: 'gateway_chassis' },
        columns: { name: `${port}-${node}`, chassis_name: node, priority: GATEWAY_PRIORITY_MOST - index },
      }),
    ),
    ...gateways.map(
      (gateway): Row => ({
        table: 'Logical_Router_Static_Route',
        key: `route-${zone}-outside-${gateway}`,
        parent: { ...router, column: 'static_routes' },
        columns: { ip_prefix: gateway.includes(':') ? '::/0' : '0.0.0.0/0', nexthop: gateway, output_port: [port] },
      }),
    ),
    ...insideRows(network, outside, router),
  ]
}

const firstOf = (prefix: string): string =>
  formatAddress('ipv6', (parseAddress(prefix.split('/')[0] ?? '')?.value ?? 0n) + 1n)
