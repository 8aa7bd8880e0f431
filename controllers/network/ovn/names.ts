/** By what the rows of OVN are known to those who hold others' rows and to hosts, and what all networks share: pure. */
import { formatAddress } from '../../../domain/network/addresses.ts'
import type { RowRef } from './row.ts'

/** Encapsulation takes its part of what the wire carries. */
export const GUEST_MTU = 1_400
export const LEASE_SECONDS = 3_600
export const ACL_PRIORITY_MOST = 32_767
/** Seen from a server. */
export const ACL_DIRECTIONS = { in: 'to-lport', out: 'from-lport' } as const

/** Routers learn of neighbours when they need them: each would have flows for all others, or follow whatever it
 *  hears. */
export const ROUTER_OPTIONS = { dynamic_neigh_routers: 'true', always_learn_from_arp_request: 'false' }

export const publicSwitch = (zone: string): RowRef => ({ table: 'Logical_Switch', key: `public-${zone}` })
export const zoneRouter = (zone: string): RowRef => ({ table: 'Logical_Router', key: `router-${zone}` })
/** That of the zone's router to the public network. */
export const zoneRouterPort = (zone: string): string => `router-${zone}-public`
/** Where the zone's router meets those of customers, apart from servers: each would have rules for all of them. */
export const edgeSwitch = (zone: string): RowRef => ({ table: 'Logical_Switch', key: `edge-${zone}` })
/** That of the zone's router to the outside. */
export const zoneOutsidePort = (zone: string): string => `router-${zone}-outside`
/** That of the zone's router to them. */
export const zoneEdgePort = (zone: string): string => `router-${zone}-edge`
export const networkSwitch = (networkId: string): RowRef => ({ table: 'Logical_Switch', key: `network-${networkId}` })
export const customerRouter = (routerId: string): RowRef => ({ table: 'Logical_Router', key: `router-${routerId}` })
/** Its half that is on one node, where it has NAT. */
export const natRouter = (routerId: string): RowRef => ({ table: 'Logical_Router', key: `router-${routerId}-nat` })
/** By the name that the host plugs it in under. */
export const guestPort = (name: string): RowRef => ({ table: 'Logical_Switch_Port', key: name })

/** RFC 4291, appendix A. */
export function linkLocalOf(macAddress: string): string {
  const [first = 0, ...rest] = macAddress.split(':').map((byte) => Number.parseInt(byte, 16))
  const bytes = [first ^ 0x02, ...rest.slice(0, 2), 0xff, 0xfe, ...rest.slice(2)]
  return formatAddress('ipv6', (0xfe80n << 112n) | bytes.reduce((value, byte) => (value << 8n) | BigInt(byte), 0n))
}

const macOf = (start: string, value: number): string =>
  [start, ...[24, 16, 8, 0].map((shift) => ((value >>> shift) & 0xff).toString(16).padStart(2, '0'))].join(':')

/** The same for the same name: locally administered, as guests' addresses never begin. */
export function routerMac(name: string): string {
  let hash = 0x811c9dc5
  for (const character of name) hash = Math.imul(hash ^ character.charCodeAt(0), 0x01000193) >>> 0
  return macOf('0a:58', hash)
}

/** Of a port that is known by its IPv4 address among many: no two are the same. */
export const macOfAddress = (ipv4: string): string =>
  macOf(
    '0a:59',
    ipv4.split('.').reduce((value, byte) => value * 256 + Number(byte), 0),
  )

/** What hosts send as port requests: while a guest moves it is where it was until the other host speaks for it. */
export const placeOf = (nodes: readonly string[]): Readonly<Record<string, string>> => ({
  'requested-chassis': nodes.join(','),
  ...(nodes.length > 1 ? { 'activation-strategy': 'rarp' } : {}),
})

/** Of the addresses of a port, which are written as one text that begins with that of its hardware. */
export function ipv4Of(addresses: unknown): string | undefined {
  const text: unknown = Array.isArray(addresses) ? addresses[0] : addresses
  const [, first = ''] = typeof text === 'string' ? text.split(' ') : []
  return first.includes('.') ? first : undefined
}
