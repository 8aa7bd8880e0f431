/** Where a customer's router sends a packet: pure. What hosts do is compared with it. */
import { contains, type Network, parseAddress, parseNetwork } from '../../domain/network/addresses.ts'
import type { StaticRoute } from '../../domain/network/rules.ts'

export interface ModelledRouter {
  /** The ranges of its networks, of both families. */
  readonly networks: readonly { readonly id: string; readonly cidr: string }[]
  readonly staticRoutes: readonly Pick<StaticRoute, 'destination' | 'nextHop'>[]
  readonly natEnabled: boolean
}

export type Way =
  /** To whoever has the address there. */
  | { readonly kind: 'network'; readonly id: string }
  /** To the host of this address, in one of the networks. */
  | { readonly kind: 'host'; readonly nextHop: string }
  | { readonly kind: 'outside' }

/** The way of the longest prefix, a network before a route of the same; undefined where none leads. */
export function wayOf(router: ModelledRouter, destination: string): Way | undefined {
  const address = parseAddress(destination)
  if (address === undefined) return undefined
  const ways = [
    ...router.networks.map(({ id, cidr }) => ({ network: parseNetwork(cidr), way: { kind: 'network', id } as const })),
    ...router.staticRoutes.map(({ destination: cidr, nextHop }) => ({
      network: parseNetwork(cidr),
      way: { kind: 'host', nextHop } as const,
    })),
    ...(router.natEnabled ? [{ network: parseNetwork('0.0.0.0/0'), way: { kind: 'outside' } as const }] : []),
  ]
  let best: { readonly network: Network; readonly way: Way } | undefined
  for (const { network, way } of ways)
    if (
      network?.family === address.family &&
      contains(network, address.value) &&
      (best === undefined || network.prefix > best.network.prefix)
    )
      best = { network, way }
  return best?.way
}
