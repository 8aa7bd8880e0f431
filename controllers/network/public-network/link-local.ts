/** IPv4 addresses with which guests without a public one reach the metadata service: pure. They are link-local and
 *  useless for anything else. The OVN database records who has which; a guest keeps its own for as long as it has a
 *  port there, because it holds a lease. */
import { formatAddress, parseAddress } from '../../../domain/network/addresses.ts'

/** Not all of 169.254.0.0/16: the router uses the beginning and the metadata service the rest. */
const FIRST = parseAddress('169.254.1.0')?.value ?? 0n
const COUNT = 168n * 256n

export const isLinkLocal = (ipv4: string): boolean => ipv4.startsWith('169.254.')

/** A free address, derived from the hardware address, so that a guest whose address was forgotten most likely gets it
 *  again; undefined when all are taken. */
export function freeLinkLocal(macAddress: string, isTaken: (ipv4: string) => boolean): string | undefined {
  const start = BigInt(`0x${macAddress.replaceAll(':', '')}`) % COUNT
  for (let step = 0n; step < COUNT; step++) {
    const address = formatAddress('ipv4', FIRST + ((start + step) % COUNT))
    if (!isTaken(address)) return address
  }
  return undefined
}
