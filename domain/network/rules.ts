/** Rules of private networks and of what is attached to them: allowed ranges, the use of addresses, and the allowed
 *  static routes. Pure. */
import {
  canonicalAddress,
  canonicalCidr,
  contains,
  formatAddress,
  formatNetwork,
  type Network,
  overlaps,
  parseAddress,
  parseNetwork,
} from './addresses.ts'

const ranges = (...texts: readonly string[]): readonly Network[] => texts.flatMap((text) => parseNetwork(text) ?? [])

/** RFC 1918 and RFC 6598: the ranges from which customers choose. */
const SPACES = ranges('10.0.0.0/8', '172.16.0.0/12', '192.168.0.0/16', '100.64.0.0/10')
const PREFIXES = { least: 16, most: 28 } as const
const DEFAULT_PREFIX = 24
const IPV4_BITS = 32

export const DNS_SERVERS_MAXIMUM = 4
export const STATIC_ROUTES_MAXIMUM = 50
export const NETWORKS_OF_ROUTER_MAXIMUM = 64

/** Why the text cannot be the range of a private network; undefined when it can. */
export function rangeFault(cidr: string): string | undefined {
  const network = parseNetwork(cidr)
  if (network?.family !== 'ipv4') return 'must be an IPv4 network whose address has no bits beyond its prefix'
  const { least, most } = PREFIXES
  if (network.prefix < least || network.prefix > most) return `must have a prefix of ${least} to ${most} bits`
  return SPACES.some((space) => contains(space, network.first))
    ? undefined
    : 'must be in 10.0.0.0/8, 172.16.0.0/12, 192.168.0.0/16 or 100.64.0.0/10'
}

const sizeOf = (prefix: number): bigint => 1n << BigInt(IPV4_BITS - prefix)

/** The first /24 that overlaps none of the taken ranges; undefined when there is none. */
export function freeRange(inUse: readonly string[]): string | undefined {
  const others = ranges(...inUse)
  const size = sizeOf(DEFAULT_PREFIX)
  for (const space of SPACES) {
    let first = space.first
    while (contains(space, first)) {
      const candidate: Network = { family: 'ipv4', first, prefix: DEFAULT_PREFIX }
      const other = others.find((one) => overlaps(one, candidate))
      if (other === undefined) return formatNetwork(candidate)
      const after = other.first + sizeOf(other.prefix)
      first = after % size === 0n ? after : (after / size + 1n) * size
    }
  }
  return undefined
}

/** The ranges that overlap the range. A text that is not a range overlaps nothing. */
export function overlapping<Range extends { readonly cidr: string }>(
  cidr: string,
  others: readonly Range[],
): readonly Range[] {
  const own = parseNetwork(cidr)
  return others.filter((other) => {
    const network = parseNetwork(other.cidr)
    return own !== undefined && network !== undefined && overlaps(own, network)
  })
}

/** Throws when the text is no network. */
export const networkOf = (cidr: string): Network => {
  const network = parseNetwork(cidr)
  if (network === undefined) throw new Error(`${cidr} is no network`)
  return network
}

/** The first address of a network, IPv4 or IPv6: reserved for its router, even if it has none yet. */
export function gatewayOf(cidr: string): string {
  const { family, first } = networkOf(cidr)
  return formatAddress(family, first + 1n)
}

/** The first and the last address for hosts in an IPv4 network: without the network, router and broadcast addresses. */
export function hostRange(cidr: string): { readonly first: bigint; readonly last: bigint } {
  const { first, prefix } = networkOf(cidr)
  return { first: first + 2n, last: first + sizeOf(prefix) - 2n }
}

const ULA_FIRST_BYTE = 0xfdn
const ULA_RANDOM_BYTES = 7
/** A /64 of RFC 4193, made from seven random bytes. */
export const ulaPrefix = (random: Uint8Array): string =>
  formatNetwork({
    family: 'ipv6',
    first:
      random.slice(0, ULA_RANDOM_BYTES).reduce((value, byte) => (value << 8n) | BigInt(byte), ULA_FIRST_BYTE) << 64n,
    prefix: 64,
  })

export interface StaticRoute {
  readonly destination: string
  readonly nextHop: string
  readonly comment: string
}

/** With its addresses in canonical form. */
export const canonicalRoute = <Route extends Pick<StaticRoute, 'destination' | 'nextHop'>>(route: Route): Route => ({
  ...route,
  destination: canonicalCidr(route.destination),
  nextHop: canonicalAddress(route.nextHop),
})

/** Destinations of no route: the host itself, link-local addresses, multicast. */
const UNROUTABLE = ranges(
  '0.0.0.0/8',
  '127.0.0.0/8',
  '169.254.0.0/16',
  '224.0.0.0/3',
  '::/127',
  'fe80::/10',
  'ff00::/8',
)
const ANYWHERE_IPV4 = '0.0.0.0/0'
const isWithin = (outer: Network, inner: Network): boolean =>
  outer.prefix <= inner.prefix && contains(outer, inner.first)

export interface RouteFault {
  /** Index in the routes. */
  readonly index: number
  readonly field: 'destination' | 'nextHop'
  readonly detail: string
}

/** Why a router cannot have the routes; undefined when it can. */
export function routesFault(
  routes: readonly Pick<StaticRoute, 'destination' | 'nextHop'>[],
  { natEnabled }: { readonly natEnabled: boolean },
): RouteFault | undefined {
  const destinations = new Set<string>()
  for (const [index, route] of routes.entries()) {
    const { destination, nextHop } = canonicalRoute(route)
    const network = parseNetwork(destination)
    const hop = parseAddress(nextHop)
    const fault = (field: RouteFault['field'], detail: string): RouteFault => ({ index, field, detail })
    if (network === undefined)
      return fault('destination', 'must be a network whose address has no bits beyond its prefix')
    if (hop?.family !== network.family) return fault('nextHop', "must be an address of the destination's family")
    if (UNROUTABLE.some((one) => one.family === network.family && isWithin(one, network)))
      return fault('destination', 'cannot be the destination of a route')
    if (UNROUTABLE.some((one) => one.family === hop.family && contains(one, hop.value)))
      return fault('nextHop', 'is no address of a network')
    if (natEnabled && destination === ANYWHERE_IPV4)
      return fault('destination', 'is where the address of the router leads already: it has NAT')
    if (destinations.has(destination)) return fault('destination', 'has a route already')
    destinations.add(destination)
  }
  return undefined
}

export interface JoinedRange {
  readonly ipv4Cidr: string
  readonly ipv6Prefix: string
}

/** The routes that can be applied: their next hop is in one of the networks. */
export const effectiveRoutes = (
  routes: readonly StaticRoute[],
  networks: readonly JoinedRange[],
): readonly Pick<StaticRoute, 'destination' | 'nextHop'>[] =>
  routes
    .filter(({ nextHop }) => isReached(nextHop, networks))
    .map(canonicalRoute)
    .map(({ destination, nextHop }) => ({ destination, nextHop }))

/** RFC 6052: the range in which IPv6-only hosts reach IPv4. */
export const NAT64_PREFIX = '64:ff9b::/96'

/** Where servers of a network reach the IPv4 Internet: addresses in the network. */
export interface Gateway {
  readonly ipv4: string
  readonly ipv6: string
}

/** The routes to the destinations of a network's gateway. A router with NAT routes to the IPv4 Internet itself. */
export const gatewayRoutes = (
  gateway: Gateway | undefined,
  { natEnabled }: { readonly natEnabled: boolean },
): readonly Pick<StaticRoute, 'destination' | 'nextHop'>[] =>
  gateway === undefined
    ? []
    : [
        ...(natEnabled ? [] : [{ destination: ANYWHERE_IPV4, nextHop: gateway.ipv4 }]),
        { destination: NAT64_PREFIX, nextHop: gateway.ipv6 },
      ]

/** The routes, and those of the others whose destinations none of them has. */
export const withRoutes = <Route extends Pick<StaticRoute, 'destination'>>(
  routes: readonly Route[],
  others: readonly Route[],
): readonly Route[] => [
  ...new Map([...others.toReversed(), ...routes].map((route) => [route.destination, route])).values(),
]

/** Whether the address is in one of the networks, where a router finds it. */
export function isReached(nextHop: string, networks: readonly JoinedRange[]): boolean {
  const hop = parseAddress(nextHop)
  return networks.some(({ ipv4Cidr, ipv6Prefix }) => {
    const network = parseNetwork(hop?.family === 'ipv6' ? ipv6Prefix : ipv4Cidr)
    return hop !== undefined && network?.family === hop.family && contains(network, hop.value)
  })
}
