/** The addresses of an embedded cloud's network of servers. Pure. All are in 198.18.0.0/15 and 2001:2::/48, which are
 *  reserved for benchmarks (RFC 2544, RFC 5180): nobody on the Internet has them, and customers do not choose them for
 *  their networks. The first half is for servers, the second for the network between them and the outside. */
/** All of IPv4. */
export const CLOUD = '198.18.0.0/15'
/** Networks that contain the addresses of servers. */
export const SERVERS = { ipv4: '198.18.0.0/16', ipv6: '2001:2::/48' } as const
/** The hosts' name for the external wire. */
export const PHYSICAL_NETWORK = 'outside'
export const MAXIMUM_ZONES = 64

/** Addresses of the machine towards the routers of the zones. */
export const TRANSFER = { ipv4: '198.19.0.1', ipv6: '2001:2:0:ffff::1' } as const
/** Addresses of the machine's own wire to the servers, with --public-route. */
export const ROUTE = {
  ipv4: { machine: '198.19.3.1', cloud: '198.19.3.2', prefix: 24 },
  ipv6: { machine: '2001:2:0:fffe::1', cloud: '2001:2:0:fffe::2', prefix: 64 },
} as const
/** Address and ports at which nodes of clusters reach their control planes: two ports for each. */
export const NODES_LISTENER = { address: TRANSFER.ipv6, firstPort: 20_000, ports: 128 } as const
/** The machine's end of that wire; names of interfaces have at most 15 bytes. */
export const wireName = (proxyPort: number): string => `wire${proxyPort}`
/** Network and resolver of the program that translates to the machine's own connections. It sends packets of `mtu`
 *  bytes whatever the other end accepts, and ignores who says that they are too large: servers take 1,400. */
export const OUTSIDE = { cidr: '198.19.255.0/24', resolver: '198.19.255.3', mtu: 1_400 } as const

/** Addresses of the zone with this number. */
export function zoneAddresses(number: number) {
  const third = number * 4
  return {
    router: { ipv4: `198.19.0.${number + 2}`, ipv6: `2001:2:0:ffff::${(number + 2).toString(16)}` },
    routes: [`198.18.${third}.0/22`, ipv6Of(number)],
    pools: [
      { name: 'servers', family: 'ipv4', use: 'server_ipv4', cidr: `198.18.${third}.0/23` },
      { name: 'floating', family: 'ipv4', use: 'floating_ipv4', cidr: `198.18.${third + 2}.0/24` },
      { name: 'edge', family: 'ipv4', use: 'edge', cidr: `198.18.${third + 3}.0/24` },
      { name: 'ipv6', family: 'ipv6', use: 'server_ipv6_prefix', cidr: ipv6Of(number) },
    ],
  } as const
}
const ipv6Of = (number: number): string =>
  number === 0 ? '2001:2::/56' : `2001:2:0:${(number * 256).toString(16)}::/56`

/** Addresses of the node with this number: of its host for moves of guests, and of its tunnels to other hosts. */
export const nodeAddresses = (number: number) => ({
  host: `198.19.1.${number + 1}`,
  tunnel: `198.19.2.${number + 1}`,
  prefix: 24,
})

/** Assigns a number to each zone: the old one, or the next free one for a new zone, so that addresses keep their zones.
 */
export function numberZones(
  zones: readonly string[],
  previous: Readonly<Record<string, number>>,
): Readonly<Record<string, number>> {
  const numbers = { ...previous }
  for (const zone of zones)
    if (numbers[zone] === undefined) {
      const used = new Set(Object.values(numbers))
      const free = Array.from({ length: MAXIMUM_ZONES }, (_, index) => index).find((index) => !used.has(index))
      if (free === undefined) throw new Error('there have been too many zones in this folder')
      numbers[zone] = free
    }
  return numbers
}
