/** Interfaces of servers in private networks: which addresses they may have. Pure. */
import { contains, formatAddress, parseAddress, parseNetwork } from './addresses.ts'
import { hostRange, type JoinedRange } from './rules.ts'

/** Includes the public interface. */
export const INTERFACES_PER_SERVER_MAXIMUM = 8

export interface ChosenAddresses {
  readonly ipv4Address?: string | undefined
  readonly ipv6Address?: string | undefined
}

export interface AddressFault {
  readonly field: 'ipv4Address' | 'ipv6Address'
  readonly detail: string
}

/** Why an interface in the network cannot have the addresses; undefined when it can. */
export function interfaceAddressFault(
  { ipv4Cidr, ipv6Prefix }: JoinedRange,
  { ipv4Address, ipv6Address }: ChosenAddresses,
): AddressFault | undefined {
  if (ipv4Address !== undefined && !isHostAddress(ipv4Cidr, ipv4Address))
    return { field: 'ipv4Address', detail: `must be an address that a host of ${ipv4Cidr} can have` }
  if (ipv6Address !== undefined && !isIpv6HostAddress(ipv6Prefix, ipv6Address))
    return { field: 'ipv6Address', detail: `must be an address of ${ipv6Prefix} that is not its router's` }
  return undefined
}

function isHostAddress(cidr: string, text: string): boolean {
  const address = parseAddress(text)
  const { first, last } = hostRange(cidr)
  return address?.family === 'ipv4' && address.value >= first && address.value <= last
}

function isIpv6HostAddress(prefix: string, text: string): boolean {
  const [network, address] = [parseNetwork(prefix), parseAddress(text)]
  if (network === undefined || address?.family !== 'ipv6') return false
  return contains(network, address.value) && address.value > network.first + 1n
}

/** The lowest free addresses of the network; chosen ones stay. An IPv6 address that is not chosen gets the same ending
 *  as the IPv4 address, if that is free. Undefined when the network is full. */
export function freeAddresses(
  { ipv4Cidr, ipv6Prefix }: JoinedRange,
  inUse: readonly string[],
  { ipv4Address, ipv6Address }: ChosenAddresses = {},
): { readonly ipv4Address: string; readonly ipv6Address: string } | undefined {
  const used = new Set(inUse)
  const { first, last } = hostRange(ipv4Cidr)
  const free = (family: 'ipv4' | 'ipv6', from: bigint, to: bigint): string | undefined => {
    for (let value = from; value <= to; value++) {
      const text = formatAddress(family, value)
      if (!used.has(text)) return text
    }
    return undefined
  }
  const ipv4 = ipv4Address ?? free('ipv4', first, last)
  const prefix = parseNetwork(ipv6Prefix)?.first
  if (ipv4 === undefined || prefix === undefined) return undefined
  const number = (parseAddress(ipv4)?.value ?? first) - (first - 2n)
  const ipv6 = ipv6Address ?? free('ipv6', prefix + number, prefix + number + BigInt(used.size) + 1n)
  return ipv6 === undefined ? undefined : { ipv4Address: ipv4, ipv6Address: ipv6 }
}
