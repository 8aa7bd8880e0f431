/** Addresses and networks of the Internet protocols as numbers: which network contains which address, and which address
 *  a pool allocates next. Pure. Texts are canonical: IPv6 as RFC 5952 writes it. */

export type AddressFamily = 'ipv4' | 'ipv6'

export interface Network {
  readonly family: AddressFamily
  readonly first: bigint
  /** Length of the prefix in bits. */
  readonly prefix: number
}

const BITS = { ipv4: 32, ipv6: 128 } as const

/** Undefined when the text is not an address. */
export function parseAddress(text: string): { readonly family: AddressFamily; readonly value: bigint } | undefined {
  const value = text.includes(':') ? parseIpv6(text) : parseIpv4(text)
  return value === undefined ? undefined : { family: text.includes(':') ? 'ipv6' : 'ipv4', value }
}

function parseIpv4(text: string): bigint | undefined {
  const octets = text.split('.')
  if (octets.length !== 4 || !octets.every((octet) => /^(0|[1-9]\d{0,2})$/.test(octet) && Number(octet) <= 255))
    return undefined
  return octets.reduce((value, octet) => (value << 8n) | BigInt(octet), 0n)
}

const GROUPS = 8

function parseIpv6(text: string): bigint | undefined {
  const [before = '', after, ...more] = text.split('::')
  const groupsOf = (part: string): string[] => (part === '' ? [] : part.split(':'))
  const [head, tail] = [groupsOf(before), groupsOf(after ?? '')]
  const missing = GROUPS - head.length - tail.length
  if (more.length > 0 || (after === undefined ? missing !== 0 : missing < 1)) return undefined
  const groups = [...head, ...Array.from({ length: missing }, () => '0'), ...tail]
  return groups.every((group) => /^[0-9a-f]{1,4}$/i.test(group))
    ? groups.reduce((value, group) => (value << 16n) | BigInt(`0x${group}`), 0n)
    : undefined
}

/** `value` is an address of the family. */
export function formatAddress(family: AddressFamily, value: bigint): string {
  if (family === 'ipv4') return [24n, 16n, 8n, 0n].map((shift) => String((value >> shift) & 0xffn)).join('.')
  const groups = Array.from({ length: GROUPS }, (_, index) =>
    ((value >> BigInt(16 * (GROUPS - 1 - index))) & 0xffffn).toString(16),
  )
  const text = groups.join(':')
  const [longest] = [...text.matchAll(/\b0(:0)+\b/g)].sort((one, other) => other[0].length - one[0].length)
  if (longest === undefined) return text
  const before = text.slice(0, longest.index).replace(/:$/, '')
  const after = text.slice(longest.index + longest[0].length).replace(/^:/, '')
  return `${before}::${after}`
}

/** Undefined when the text is not a network, or has address bits beyond its prefix. */
export function parseNetwork(text: string): Network | undefined {
  const [address = '', length = '', ...more] = text.split('/')
  const parsed = parseAddress(address)
  if (parsed === undefined || more.length > 0 || !/^(0|[1-9]\d{0,2})$/.test(length)) return undefined
  const prefix = Number(length)
  if (prefix > BITS[parsed.family] || (parsed.value & hostMask(parsed.family, prefix)) !== 0n) return undefined
  return { family: parsed.family, first: parsed.value, prefix }
}

const hostMask = (family: AddressFamily, prefix: number): bigint => (1n << BigInt(BITS[family] - prefix)) - 1n

/** In the form of `parseNetwork`. */
export const formatNetwork = ({ family, first, prefix }: Network): string => `${formatAddress(family, first)}/${prefix}`

/** The canonical text of the address, the same for all texts of one address. A text that is not an address stays as it
 *  is. */
export function canonicalAddress(text: string): string {
  const parsed = parseAddress(text)
  return parsed === undefined ? text : formatAddress(parsed.family, parsed.value)
}

/** The canonical text of an address with the length of its prefix; bits beyond the prefix stay. Any other text stays as
 *  it is. */
export function canonicalCidr(text: string): string {
  const [address = '', length = '', ...more] = text.split('/')
  return more.length > 0 || !/^\d{1,3}$/.test(length) ? text : `${canonicalAddress(address)}/${Number(length)}`
}

/** `address` is one of the same family. */
export const contains = (network: Network, address: bigint): boolean =>
  address >= network.first && address <= network.first + hostMask(network.family, network.prefix)

export const overlaps = (one: Network, other: Network): boolean =>
  one.family === other.family && (contains(one, other.first) || contains(other, one.first))

/** Ranges that are not routed on the Internet: unique local (RFC 4193), private (RFC 1918) and shared (RFC 6598). */
const PRIVATE_NETWORKS = ['fc00::/7', '10.0.0.0/8', '172.16.0.0/12', '192.168.0.0/16', '100.64.0.0/10'].flatMap(
  (text) => parseNetwork(text) ?? [],
)

/** How much of the network is not routed on the Internet. */
export function privatePartOf(network: Network): 'all' | 'some' | 'none' {
  const shared = PRIVATE_NETWORKS.find((space) => overlaps(space, network))
  return shared === undefined ? 'none' : shared.prefix <= network.prefix ? 'all' : 'some'
}

/** Whether the address is not routed on the Internet. */
export function isPrivateAddress(text: string): boolean {
  const address = parseAddress(text)
  return (
    address !== undefined &&
    privatePartOf({ family: address.family, first: address.value, prefix: BITS[address.family] }) === 'all'
  )
}

/** Whether all addresses of the network are not routed on the Internet. */
export function isPrivateNetwork(cidr: string): boolean {
  const network = parseNetwork(cidr)
  return network !== undefined && privatePartOf(network) === 'all'
}
