/** Which addresses an embedded cloud uses for the network of its servers: pure. All of IPv4 is out of 198.18.0.0/15 and
 *  of IPv6 out of 2001:2::/48, which are for benchmarks (RFC 2544, RFC 5180): nobody on the Internet has them, and
 *  customers do not choose them for networks of their own. Servers have the first half, what is between them and the
 *  outside the second. */
/** All of IPv4. */
export const CLOUD = '198.18.0.0/15'
/** What the addresses of servers are part of. */
export const SERVERS = { ipv4: '198.18.0.0/16', ipv6: '2001:2::/48' } as const
/** Name by which the hosts know the wire outside. */
export const PHYSICAL_NETWORK = 'outside'
export const MAXIMUM_ZONES = 64

/** Where the routers of the zones meet the machine. */
export const TRANSFER = { ipv4: '198.19.0.1', ipv6: '2001:2:0:ffff::1' } as const
/** Where the machine's own wire to the servers ends, with --public-route. */
export const ROUTE = {
  ipv4: { machine: '198.19.3.1', cloud: '198.19.3.2', prefix: 24 },
  ipv6: { machine: '2001:2:0:fffe::1', cloud: '2001:2:0:fffe::2', prefix: 64 },
} as const
/** Where nodes of clusters reach their control planes: two ports for each. */
export const NODES_LISTENER = { address: TRANSFER.ipv6, firstPort: 20_000, ports: 128 } as const
/** The machine's end of that wire; names of interfaces have 15 bytes. */
export const wireName = (proxyPort: number): string => `wire${proxyPort}`
/** What translates to the machine's own connections, and the resolver there. */
export const OUTSIDE = { cidr: '198.19.255.0/24', resolver: '198.19.255.3' } as const

/** Addresses of the zone of this number. */
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

/** Addresses of the node of this number: of its host for guests that move, and for what goes between hosts. */
export const nodeAddresses = (number: number) => ({
  host: `198.19.1.${number + 1}`,
  tunnel: `198.19.2.${number + 1}`,
  prefix: 24,
})

/** The number of each zone: what it had, and the next free one for a new one, so that addresses stay whose they are. */
export function numberZones(
  zones: readonly string[],
  kept: Readonly<Record<string, number>>,
): Readonly<Record<string, number>> {
  const numbers = { ...kept }
  for (const zone of zones)
    if (numbers[zone] === undefined) {
      const used = new Set(Object.values(numbers))
      const free = Array.from({ length: MAXIMUM_ZONES }, (_, index) => index).find((index) => !used.has(index))
      if (free === undefined) throw new Error('there have been too many zones in this folder')
      numbers[zone] = free
    }
  return numbers
}
