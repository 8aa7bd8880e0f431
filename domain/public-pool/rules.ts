/** Pools of public addresses: which networks may be pools, and the meaning of each address or prefix in one. Pure;
 *  `db/public-pool/index.ts` allocates them. IPv4 pools allocate single addresses, IPv6 pools a /64 each. */
import {
  type AddressFamily,
  canonicalAddress,
  canonicalCidr,
  contains,
  formatAddress,
  type Network,
  overlaps,
  parseAddress,
  parseNetwork,
  privatePartOf,
} from '../network/addresses.ts'
import { networkOf } from '../network/rules.ts'

export const POOL_USES = ['server_ipv4', 'server_ipv6_prefix', 'floating_ipv4', 'edge', 'control_plane'] as const
export type PoolUse = (typeof POOL_USES)[number]

export const PUBLIC_POOL_STATES = ['active', 'draining', 'retired'] as const
export type PublicPoolState = (typeof PUBLIC_POOL_STATES)[number]

export interface PoolNetwork {
  readonly family: AddressFamily
  readonly cidr: string
  readonly use: PoolUse
  readonly isPrivate: boolean
  /** The addresses' gateway to the Internet; `defaultGateway` when absent. */
  readonly gateway?: string | undefined
}

/** The pool with its network and gateway in canonical form: the form in which it is stored and compared. */
export const canonicalPool = <Pool extends Pick<PoolNetwork, 'cidr' | 'gateway'>>(pool: Pool): Pool => ({
  ...pool,
  cidr: canonicalCidr(pool.cidr),
  ...(pool.gateway === undefined ? {} : { gateway: canonicalAddress(pool.gateway) }),
})

/** Longer prefixes have no room beside their own gateway; shorter ones are larger than one pool should be. */
const POOL_PREFIXES = { ipv4: { least: 8, most: 30 }, ipv6: { least: 16, most: 64 } } as const
const HANDED_OUT_PREFIX = { ipv4: 32, ipv6: 64 } as const
const IPV6_ROUTER = 'fe80::1'
const LINK_LOCAL: Network = { family: 'ipv6', first: 0xfe80n << 112n, prefix: 10 }
const FAMILIES: Partial<Readonly<Record<PoolUse, AddressFamily>>> = {
  server_ipv4: 'ipv4',
  floating_ipv4: 'ipv4',
  server_ipv6_prefix: 'ipv6',
}
/** What pools of the use allocate, where they may be of either family. */
export const givenFamily = (use: PoolUse): AddressFamily => FAMILIES[use] ?? 'ipv4'
/** Network address, broadcast address and gateway of an IPv4 pool. */
const IPV4_KEPT_BACK = 3n

/** The one that a server uses, and those that were replaced and still point to it. */
export const PREFIXES_OF_SERVER_MAXIMUM = 16

export interface PoolFault {
  readonly field: 'cidr' | 'use' | 'gateway' | 'is_private'
  readonly detail: string
}

/** Why this cannot be a pool; undefined when it can. */
export function poolFault({ family, cidr, use, isPrivate, gateway }: PoolNetwork): PoolFault | undefined {
  const network = parseNetwork(cidr)
  if (network?.family !== family)
    return {
      field: 'cidr',
      detail: `must be an ${family === 'ipv4' ? 'IPv4' : 'IPv6'} network whose address has no bits beyond its prefix`,
    }
  const { least, most } = POOL_PREFIXES[family]
  if (network.prefix < least || network.prefix > most)
    return { field: 'cidr', detail: `must have a prefix of ${least} to ${most} bits` }
  if ((FAMILIES[use] ?? family) !== family)
    return { field: 'use', detail: `is not for ${family === 'ipv4' ? 'IPv4' : 'IPv6'} pools` }
  const privatePart = privatePartOf(network)
  if (privatePart === 'some') return { field: 'cidr', detail: 'must not hold both private and public addresses' }
  if ((privatePart === 'all') !== isPrivate)
    return {
      field: 'is_private',
      detail: isPrivate
        ? 'the network is a public one'
        : 'the network is a private one, which the Internet does not route',
    }
  return gatewayFault(network, gateway)
}

function gatewayFault(network: Network, text: string | undefined): PoolFault | undefined {
  if (text === undefined) return undefined
  const gateway = parseAddress(text)
  if (gateway?.family !== network.family) return { field: 'gateway', detail: "must be an address of the pool's family" }
  if (network.family === 'ipv6')
    return contains(LINK_LOCAL, gateway.value)
      ? undefined
      : { field: 'gateway', detail: 'must be a link-local address: every server has its own network' }
  const isHost =
    contains(network, gateway.value) && gateway.value !== network.first && contains(network, gateway.value + 1n)
  return isHost ? undefined : { field: 'gateway', detail: 'must be an address of the network that a host can have' }
}

const gatewayOf = ({ family, cidr, gateway }: Pick<PoolNetwork, 'family' | 'cidr' | 'gateway'>): string =>
  gateway ?? (family === 'ipv6' ? IPV6_ROUTER : formatAddress('ipv4', networkOf(cidr).first + 1n))

/** How many addresses, or prefixes, a pool can allocate. Exact: at most 2^48. Zero for a text that is not a network, or
 *  for one that is too small. */
export function poolTotal(cidr: string): number {
  const network = parseNetwork(cidr)
  if (network === undefined) return 0
  const { family, prefix } = network
  const size = 1n << BigInt(HANDED_OUT_PREFIX[family] - prefix)
  return Math.max(0, Number(family === 'ipv4' ? size - IPV4_KEPT_BACK : size))
}

/** An allocation from a pool, in the form in which its holder uses it. */
export interface PublicAddress {
  readonly address: string
  /** Length of the prefix in bits: that of the network that contains an IPv4 address, or 64. */
  readonly prefix: number
  readonly gateway: string
}

/** The address of this number in the pool, from 0 to below `poolTotal`; of an IPv6 prefix its first one. */
export function poolAddress(pool: Pick<PoolNetwork, 'family' | 'cidr' | 'gateway'>, index: number): PublicAddress {
  const network = networkOf(pool.cidr)
  const gateway = gatewayOf(pool)
  if (network.family === 'ipv6')
    return {
      address: formatAddress('ipv6', network.first + (BigInt(index) << 64n) + 1n),
      prefix: HANDED_OUT_PREFIX.ipv6,
      gateway,
    }
  const candidate = network.first + 1n + BigInt(index)
  const value = candidate >= (parseAddress(gateway)?.value ?? 0n) ? candidate + 1n : candidate
  return { address: formatAddress('ipv4', value), prefix: network.prefix, gateway }
}

/** The /64 that an address of an IPv6 pool represents. */
export const prefixOf = (address: string): string =>
  `${formatAddress('ipv6', ((parseAddress(address)?.value ?? 0n) >> 64n) << 64n)}/64`

/** The address by which an IPv6 pool knows the /64. */
export const firstOfPrefix = (prefix: string): string =>
  formatAddress('ipv6', ((networkOf(prefix).first >> 64n) << 64n) + 1n)

/** A text that is not a network overlaps nothing. */
export function poolsOverlap(one: string, other: string): boolean {
  const [first, second] = [parseNetwork(one), parseNetwork(other)]
  return first !== undefined && second !== undefined && overlaps(first, second)
}
