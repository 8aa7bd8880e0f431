/** Addresses that are on the public Internet, and nowhere else: not a host, a network beside it, or a network behind a
 *  translator. Pure. */
import { contains, formatAddress, type Network, parseAddress, parseNetwork } from './addresses.ts'

const networks = (...texts: readonly string[]): readonly Network[] => texts.flatMap((text) => parseNetwork(text) ?? [])

/** The special-purpose registry of IANA (RFC 6890 and what followed), and multicast. */
const SPECIAL_IPV4 = networks(
  '0.0.0.0/8',
  '10.0.0.0/8',
  '100.64.0.0/10',
  '127.0.0.0/8',
  '169.254.0.0/16',
  '172.16.0.0/12',
  '192.0.0.0/24',
  '192.0.2.0/24',
  '192.88.99.0/24',
  '192.168.0.0/16',
  '198.18.0.0/15',
  '198.51.100.0/24',
  '203.0.113.0/24',
  '224.0.0.0/4',
  '240.0.0.0/4',
)
/** The only space of IPv6 that is allocated for the Internet, and the parts of it that are not: protocol assignments
 *  (Teredo among them), documentation, and 6to4, which maps to an IPv4 address. */
const GLOBAL_IPV6 = networks('2000::/3')
const SPECIAL_IPV6 = networks('2001::/23', '2001:db8::/32', '2002::/16', '3fff::/20')
/** Their last 32 bits are an IPv4 address: mapped (RFC 4291) and translated by the well-known prefix (RFC 6052). */
const EMBEDDING_IPV6 = networks('::ffff:0:0/96', '64:ff9b::/96')
const EMBEDDED_BITS = 0xffff_ffffn

const isIn = (spaces: readonly Network[], value: bigint): boolean => spaces.some((space) => contains(space, value))

/** False for a text that is not an address, and for an address with a zone (`fe80::1%eth0`). */
export function isPublicAddress(text: string): boolean {
  const canonical = /^::ffff:\d+\.\d+\.\d+\.\d+$/i.test(text) ? text.slice('::ffff:'.length) : text
  const address = parseAddress(canonical)
  if (address === undefined) return false
  if (address.family === 'ipv4') return !isIn(SPECIAL_IPV4, address.value)
  if (isIn(EMBEDDING_IPV6, address.value)) return isPublicAddress(formatAddress('ipv4', address.value & EMBEDDED_BITS))
  return isIn(GLOBAL_IPV6, address.value) && !isIn(SPECIAL_IPV6, address.value)
}
