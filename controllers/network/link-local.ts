/** IPv4 addresses by which guests without a public one speak to the metadata service: pure. They are link-local and no
 *  good for anything else. The network's database remembers who has which; a guest keeps its own for as long as it has
 *  a port there, because it holds a lease. */
import { formatAddress, parseAddress } from '../../domain/addresses.ts'
import { LINK_LOCAL, type PublicNetwork, type PublicPort } from './topology.ts'

/** Not the whole of 169.254.0.0/16: the router has the beginning and the metadata service the rest. */
const FIRST = parseAddress('169.254.1.0')?.value ?? 0n
const COUNT = 168n * 256n
const LINK_LOCAL_START = '169.254.'
/** `held`: addresses by port. Guests get none when all are taken. */
export function withLinkLocals(network: PublicNetwork, held: ReadonlyMap<string, string>): PublicNetwork {
  const lacking = network.ports.filter(({ ipv4 }) => ipv4 === undefined)
  const given = new Map(
    [...held].filter(
      ([name, address]) => address.startsWith(LINK_LOCAL_START) && lacking.some((port) => port.name === name),
    ),
  )
  const taken = new Set(given.values())
  for (const port of lacking) {
    if (given.has(port.name)) continue
    const address = freeAddress(port, taken)
    if (address === undefined) break
    given.set(port.name, address)
    taken.add(address)
  }
  return {
    ...network,
    ports: network.ports.map((port) => {
      const address = given.get(port.name)
      return port.ipv4 !== undefined || address === undefined ? port : { ...port, ipv4: { address, ...LINK_LOCAL } }
    }),
  }
}

/** By the hardware address first, so that one that was forgotten is most likely given again. */
function freeAddress({ macAddress }: PublicPort, taken: ReadonlySet<string>): string | undefined {
  const start = BigInt(`0x${macAddress.replaceAll(':', '')}`) % COUNT
  for (let step = 0n; step < COUNT; step++) {
    const address = formatAddress('ipv4', FIRST + ((start + step) % COUNT))
    if (!taken.has(address)) return address
  }
  return undefined
}
