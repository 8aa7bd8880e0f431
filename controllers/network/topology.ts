/** The public network of a zone as OVN has it: pure. One switch that the guests are on, with a port for the metadata
 *  service that every host has for itself, one router behind it, and the way outside. An IPv4 address is its guest's
 *  own
 *  on the switch; an IPv6 prefix is routed to its guest, so that no two guests share one. Guests can use no address but
 *  theirs: the switch drops what comes from any other. It also drops the messages of DHCP servers, because OVN itself
 *  is the one there is. */
import { parseAddress, formatAddress } from '../../domain/addresses.ts'
import { METADATA_ADDRESS, METADATA_MAC, metadataPort } from '../../domain/metadata-service.ts'

export const LINK_LOCAL = { prefix: 16, gateway: '169.254.0.1', cidr: '169.254.0.0/16' } as const

export interface PublicPort {
  /** Name of the Instance, which its host plugs in under this name. */
  readonly name: string
  readonly macAddress: string
  readonly ipv4?:
    | { readonly address: string; readonly prefix: number; readonly gateway: string; readonly cidr: string }
    | undefined
  /** Every prefix that leads to the guest. */
  readonly ipv6Prefixes: readonly string[]
  /** The node that runs it; the node that it goes to besides, while it moves. */
  readonly nodes: readonly string[]
}

/** Where the zone's router meets the routers around it. */
export interface Outside {
  /** The name by which hosts know the physical network. */
  readonly physicalNetwork: string
  readonly addresses: readonly string[]
  readonly gateways: readonly string[]
}

export interface PublicNetwork {
  readonly zone: string
  readonly ports: readonly PublicPort[]
  readonly outside?: Outside | undefined
  /** Nodes that the way outside leads through, the first that is alive. */
  readonly gatewayNodes: readonly string[]
}

/** A row that shall be there, found again by its key. Lists are sets; objects are maps. */
export interface Row {
  readonly table:
    | 'Logical_Switch'
    | 'Logical_Switch_Port'
    | 'ACL'
    | 'Logical_Router'
    | 'Logical_Router_Port'
    | 'Logical_Router_Static_Route'
    | 'DHCP_Options'
    | 'Gateway_Chassis'
  readonly key: string
  readonly columns: Readonly<Record<string, Value>>
  /** The row that holds it, and in which column. */
  readonly parent?: { readonly key: string; readonly column: string }
}
export type Value =
  | string
  | number
  | boolean
  | readonly string[]
  | Readonly<Record<string, string>>
  | { readonly row: string }

/** Encapsulation takes its part of what the wire carries. */
const GUEST_MTU = 1_400
const LEASE_SECONDS = 3_600
/** Routers speak of themselves only where they have a network beside the link-local one; no guest is given an address
 *  of it. By that of IPv4 guests with a public address find the metadata service. */
const ROUTER_NETWORKS = ['fe80::1/64', 'fd73:7663:636c::1/64', `${LINK_LOCAL.gateway}/${LINK_LOCAL.prefix}`]
const GATEWAY_PRIORITY_MOST = 100
const ACL_PRIORITY_MOST = 32_767

export function rowsOf(network: PublicNetwork): readonly Row[] {
  const { zone, ports, outside } = network
  const [publicSwitch, router, routerPort] = [`public-${zone}`, `router-${zone}`, `router-${zone}-public`]
  const subnets = new Map(ports.flatMap(({ ipv4 }) => (ipv4 === undefined ? [] : [[ipv4.cidr, ipv4] as const])))
  const routerNetworks = [
    ...new Set([...ROUTER_NETWORKS, ...[...subnets.values()].map(({ gateway, prefix }) => `${gateway}/${prefix}`)]),
  ]
  return [
    { table: 'Logical_Switch', key: publicSwitch, columns: { name: publicSwitch } },
    {
      table: 'ACL',
      key: `${publicSwitch}-dhcp`,
      parent: { key: publicSwitch, column: 'acls' },
      columns: {
        direction: 'from-lport',
        priority: ACL_PRIORITY_MOST,
        // No guest can send from the hardware address of the router.
        match: `eth.src != ${routerMac(`${zone}/public`)} && udp.src == {67, 547}`,
        action: 'drop',
      },
    },
    { table: 'Logical_Router', key: router, columns: { name: router } },
    {
      table: 'Logical_Router_Port',
      key: routerPort,
      parent: { key: router, column: 'ports' },
      columns: {
        name: routerPort,
        mac: routerMac(`${zone}/public`),
        networks: routerNetworks,
        ipv6_ra_configs: { address_mode: 'dhcpv6_stateful', send_periodic: 'true', mtu: String(GUEST_MTU) },
      },
    },
    {
      table: 'Logical_Switch_Port',
      key: `${publicSwitch}-router`,
      parent: { key: publicSwitch, column: 'ports' },
      columns: {
        name: `${publicSwitch}-router`,
        type: 'router',
        addresses: ['router'],
        options: { 'router-port': routerPort },
      },
    },
    {
      table: 'Logical_Switch_Port',
      key: `${publicSwitch}-metadata`,
      parent: { key: publicSwitch, column: 'ports' },
      columns: { name: metadataPort(zone), type: 'localport', addresses: [`${METADATA_MAC} ${METADATA_ADDRESS}`] },
    },
    ...[...subnets].map(
      ([cidr, { gateway }]): Row => ({
        table: 'DHCP_Options',
        key: `dhcp-${zone}-${cidr}`,
        columns: {
          cidr,
          options: {
            ...(cidr === LINK_LOCAL.cidr ? {} : { router: gateway }),
            server_id: gateway,
            server_mac: routerMac(`${zone}/public`),
            lease_time: String(LEASE_SECONDS),
            mtu: String(GUEST_MTU),
          },
        },
      }),
    ),
    ...ports.flatMap((port) => portRows(zone, publicSwitch, router, routerPort, port)),
    ...(outside === undefined ? [] : outsideRows(network, outside, router)),
  ]
}

function portRows(
  zone: string,
  publicSwitch: string,
  router: string,
  routerPort: string,
  { name, macAddress, ipv4, ipv6Prefixes, nodes }: PublicPort,
): readonly Row[] {
  const linkLocal = linkLocalOf(macAddress)
  const own = [macAddress, ...(ipv4 === undefined ? [] : [ipv4.address])]
  return [
    {
      table: 'Logical_Switch_Port',
      key: name,
      parent: { key: publicSwitch, column: 'ports' },
      columns: {
        name,
        type: '',
        addresses: [[...own, linkLocal, ...ipv6Prefixes.map(firstOf)].join(' ')],
        port_security: [[...own, linkLocal, ...ipv6Prefixes].join(' ')],
        // While a guest moves it is where it was until the other host speaks for it.
        options: {
          'requested-chassis': nodes.join(','),
          ...(nodes.length > 1 ? { 'activation-strategy': 'rarp' } : {}),
        },
        ...(ipv4 === undefined ? {} : { dhcpv4_options: { row: `dhcp-${zone}-${ipv4.cidr}` } }),
      },
    },
    ...ipv6Prefixes.map(
      (prefix): Row => ({
        table: 'Logical_Router_Static_Route',
        key: `route-${zone}-${prefix}`,
        parent: { key: router, column: 'static_routes' },
        columns: { ip_prefix: prefix, nexthop: linkLocal, output_port: [routerPort] },
      }),
    ),
  ]
}

function outsideRows(
  { zone, gatewayNodes }: PublicNetwork,
  { physicalNetwork, addresses, gateways }: Outside,
  router: string,
): readonly Row[] {
  const [outsideSwitch, port] = [`outside-${zone}`, `router-${zone}-outside`]
  return [
    { table: 'Logical_Switch', key: outsideSwitch, columns: { name: outsideSwitch } },
    {
      table: 'Logical_Switch_Port',
      key: `${outsideSwitch}-wire`,
      parent: { key: outsideSwitch, column: 'ports' },
      columns: {
        name: `${outsideSwitch}-wire`,
        type: 'localnet',
        addresses: ['unknown'],
        options: { network_name: physicalNetwork },
      },
    },
    {
      table: 'Logical_Switch_Port',
      key: `${outsideSwitch}-router`,
      parent: { key: outsideSwitch, column: 'ports' },
      columns: {
        name: `${outsideSwitch}-router`,
        type: 'router',
        addresses: ['router'],
        options: { 'router-port': port },
      },
    },
    {
      table: 'Logical_Router_Port',
      key: port,
      parent: { key: router, column: 'ports' },
      columns: { name: port, mac: routerMac(`${zone}/outside`), networks: [...addresses] },
    },
    ...gatewayNodes.slice(0, GATEWAY_PRIORITY_MOST).map(
      (node, index): Row => ({
        table: 'Gateway_Chassis',
        key: `${port}-${node}`,
        parent: { key: port, column: 'gateway_chassis' },
        columns: { name: `${port}-${node}`, chassis_name: node, priority: GATEWAY_PRIORITY_MOST - index },
      }),
    ),
    ...gateways.map(
      (gateway): Row => ({
        table: 'Logical_Router_Static_Route',
        key: `route-${zone}-outside-${gateway}`,
        parent: { key: router, column: 'static_routes' },
        columns: { ip_prefix: gateway.includes(':') ? '::/0' : '0.0.0.0/0', nexthop: gateway, output_port: [port] },
      }),
    ),
  ]
}

/** RFC 4291, appendix A. */
export function linkLocalOf(macAddress: string): string {
  const [first = 0, ...rest] = macAddress.split(':').map((byte) => Number.parseInt(byte, 16))
  const bytes = [first ^ 0x02, ...rest.slice(0, 2), 0xff, 0xfe, ...rest.slice(2)]
  return formatAddress('ipv6', (0xfe80n << 112n) | bytes.reduce((value, byte) => (value << 8n) | BigInt(byte), 0n))
}

const firstOf = (prefix: string): string =>
  formatAddress('ipv6', (parseAddress(prefix.split('/')[0] ?? '')?.value ?? 0n) + 1n)

/** The same for the same name: locally administered, as guests' addresses never begin. */
function routerMac(name: string): string {
  let hash = 0x811c9dc5
  for (const character of name) hash = Math.imul(hash ^ character.charCodeAt(0), 0x01000193) >>> 0
  return ['0a', '58', ...[24, 16, 8, 0].map((shift) => ((hash >>> shift) & 0xff).toString(16).padStart(2, '0'))].join(
    ':',
  )
}
