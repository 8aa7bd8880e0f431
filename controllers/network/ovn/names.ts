/** Names of OVN rows that holders and hosts refer to, and constants that all networks share: pure. */
import { formatAddress } from '../../../domain/network/addresses.ts'
import type { RowRef } from './row.ts'

/** Encapsulation uses part of the MTU of the wire. */
export const GUEST_MTU = 1_400
export const LEASE_SECONDS = 3_600
export const ACL_PRIORITY_MOST = 32_767
/** From the view of a server. */
export const ACL_DIRECTIONS = { in: 'to-lport', out: 'from-lport' } as const

/** Routers learn neighbours when they need them. Otherwise each router would have flows for all others, or learn from
 *  every ARP request that it receives. */
export const ROUTER_OPTIONS = { dynamic_neigh_routers: 'true', always_learn_from_arp_request: 'false' }

export const publicSwitch = (zone: string): RowRef => ({ table: 'Logical_Switch', key: `public-${zone}` })
export const zoneRouter = (zone: string): RowRef => ({ table: 'Logical_Router', key: `router-${zone}` })
/** The port of the zone's router in the public network. */
export const zoneRouterPort = (zone: string): string => `router-${zone}-public`
/** The switch between the zone's router and customers' routers, apart from servers: otherwise each server would have
 *  rules for all of them. */
export const edgeSwitch = (zone: string): RowRef => ({ table: 'Logical_Switch', key: `edge-${zone}` })
/** The port of the zone's router to the outside. */
export const zoneOutsidePort = (zone: string): string => `router-${zone}-outside`
/** The port of the zone's router to customers' routers. */
export const zoneEdgePort = (zone: string): string => `router-${zone}-edge`
export const networkSwitch = (networkId: string): RowRef => ({ table: 'Logical_Switch', key: `network-${networkId}` })
export const customerRouter = (routerId: string): RowRef => ({ table: 'Logical_Router', key: `router-${routerId}` })
/** The half of a customer's router that is on one node, where it has NAT. */
export const natRouter = (routerId: string): RowRef => ({ table: 'Logical_Router', key: `router-${routerId}-nat` })
/** By the name under which the host attaches the port. */
export const guestPort = (name: string): RowRef => ({ table: 'Logical_Switch_Port', key: name })

/** RFC 4291, appendix A. */
export function linkLocalOf(macAddress: string): string {
  const [first = 0, ...rest] = macAddress.split(':').map((byte) => Number.parseInt(byte, 16))
  const bytes = [first ^ 0x02, ...rest.slice(0, 2), 0xff, 0xfe, ...rest.slice(2)]
  return formatAddress('ipv6', (0xfe80n << 112n) | bytes.reduce((value, byte) => (value << 8n) | BigInt(byte), 0n))
}

const macOf = (start: string, value: number): string =>
  [start, ...[24, 16, 8, 0].map((shift) => ((value >>> shift) & 0xff).toString(16).padStart(2, '0'))].join(':')

/** The same for the same name: locally administered, with a prefix that guests' addresses never have. */
export function routerMac(name: string): string {
  let hash = 0x811c9dc5
  for (const character of name) hash = Math.imul(hash ^ character.charCodeAt(0), 0x01000193) >>> 0
  return macOf('0a:58', hash)
}

/** The hardware address of a port that its IPv4 address identifies: no two are the same. */
export const macOfAddress = (ipv4: string): string =>
  macOf(
    '0a:59',
    ipv4.split('.').reduce((value, byte) => value * 256 + Number(byte), 0),
  )

/** The options of a port that request its hosts: during a migration the guest's port stays where it was until the
 *  target announces it. */
export const chassisOptions = (nodes: readonly string[]): Readonly<Record<string, string>> => ({
  'requested-chassis': nodes.join(','),
  ...(nodes.length > 1 ? { 'activation-strategy': 'rarp' } : {}),
})

/** From the addresses of a port, one text that starts with the hardware address. */
export function ipv4Of(addresses: unknown): string | undefined {
  const [, first = ''] = wordsOf(addresses)
  return first.includes('.') ? first : undefined
}

/** The same for the hardware address. */
export const macOfPort = (addresses: unknown): string | undefined => wordsOf(addresses)[0]

function wordsOf(addresses: unknown): readonly string[] {
  const text: unknown = Array.isArray(addresses) ? addresses[0] : addresses
  return typeof text === 'string' ? text.split(' ') : []
}
