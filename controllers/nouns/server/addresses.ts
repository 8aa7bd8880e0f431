/** The public addresses of a server, for its host, its guest and people. */
import type { HeldAddress } from '../../../db/public-pool/index.ts'
import type { ServerClaims } from '../../../db/server/index.ts'
import { prefixOf, type PublicAddress } from '../../../domain/public-pool/rules.ts'
import type { InstanceSpec } from '../../../resources/instance/index.ts'
import type { ServerStatus } from '../../../resources/server/index.ts'

/** The address that was not replaced; undefined when the server has none of that use. */
export const currentAddress = ({ addresses }: ServerClaims, use: HeldAddress['use']): HeldAddress | undefined =>
  addresses.find((held) => held.use === use && held.isCurrent)

const plain = ({ address, prefix, gateway }: PublicAddress): PublicAddress => ({ address, prefix, gateway })

/** The public interface. Prefixes that were replaced are still routed to the guest. */
export function publicInterface(claims: ServerClaims): InstanceSpec['interfaces'][number] {
  const [ipv4, ipv6] = [currentAddress(claims, 'server_ipv4'), currentAddress(claims, 'server_ipv6_prefix')]
  const prefixes = claims.addresses
    .filter(({ use }) => use === 'server_ipv6_prefix')
    .map(({ address }) => prefixOf(address))
  return {
    macAddress: claims.macAddress,
    kind: 'public',
    ...(ipv4 === undefined ? {} : { ipv4: plain(ipv4) }),
    ...(ipv6 === undefined ? {} : { ipv6: plain(ipv6) }),
    ...(prefixes.length === 0 ? {} : { routedPrefixes: prefixes }),
  }
}

/** The addresses in the form of the status; undefined fields are absent. */
export function addressStatus(claims: ServerClaims): {
  readonly [Field in 'publicIpv4' | 'publicIpv6' | 'publicIpv6Prefix' | 'ipv6RenumberAvailable']:
    | ServerStatus[Field]
    | undefined
} {
  const ipv6 = currentAddress(claims, 'server_ipv6_prefix')
  return {
    publicIpv4: currentAddress(claims, 'server_ipv4')?.address,
    publicIpv6: ipv6?.address,
    publicIpv6Prefix: ipv6 && prefixOf(ipv6.address),
    ipv6RenumberAvailable: ipv6?.isDraining === true ? true : undefined,
  }
}
