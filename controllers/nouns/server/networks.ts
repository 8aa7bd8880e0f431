/** The private networks of a server, from its spec and its claims. Pure. */
import { parseNetwork } from '../../../domain/network/addresses.ts'
import { gatewayOf } from '../../../domain/network/rules.ts'
import type { ClaimedInterface } from '../../../db/network-interface/index.ts'
import type { ServerClaims } from '../../../db/server/index.ts'
import type { InstanceSpec } from '../../../resources/instance/index.ts'
import type { ServerSpec, ServerStatus } from '../../../resources/server/index.ts'
import type { ServerAction } from './actions.ts'
import type { Observed, ServerObject } from './observed.ts'

type NetworkEntry = NonNullable<ServerSpec['networks']>[number]

/** The interfaces that it has, without those that are claimed for a request whose write to the spec is still to
 *  come. */
export const stayingInterfaces = (
  { spec: { networks = [] }, status }: Pick<ServerObject, 'spec' | 'status'>,
  { interfaces = [] }: Pick<ServerClaims, 'interfaces'>,
): readonly ClaimedInterface[] =>
  interfaces.filter(
    ({ id, networkId, isLeaving }) =>
      !isLeaving &&
      (networks.some((entry) => entry.networkId === networkId) ||
        status?.interfaces?.some((known) => known.id === id) === true),
  )

/** Networks that are not claimed yet, and networks that are claimed but no longer in the spec. */
export function networksToChange(
  server: ServerObject,
  claims: Pick<ServerClaims, 'interfaces'>,
): { readonly joining: readonly NetworkEntry[]; readonly leaving: readonly string[] } {
  const staying = stayingInterfaces(server, claims)
  const { networks = [] } = server.spec
  return {
    joining: networks.filter(({ networkId }) => !staying.some((each) => each.networkId === networkId)),
    leaving: staying
      .filter((each) => !networks.some(({ networkId }) => networkId === each.networkId))
      .map(({ networkId }) => networkId),
  }
}

const prefixOf = (cidr: string): number => parseNetwork(cidr)?.prefix ?? 0

/** In the form of the host. */
export const privateInterfaces = (server: ServerObject, claims: ServerClaims): InstanceSpec['interfaces'] =>
  stayingInterfaces(server, claims).map(({ id, slot, macAddress, ipv4Address, ipv6Address, ipv4Cidr, ipv6Prefix }) => ({
    portName: id,
    slot,
    macAddress,
    kind: 'private',
    ipv4: { address: ipv4Address, prefix: prefixOf(ipv4Cidr), gateway: gatewayOf(ipv4Cidr) },
    ipv6: { address: ipv6Address, prefix: prefixOf(ipv6Prefix), gateway: gatewayOf(ipv6Prefix) },
  }))

/** In the form of the status; absent when there are none. */
export const interfacesStatus = (
  server: ServerObject,
  claims: ServerClaims,
): { readonly interfaces: ServerStatus['interfaces'] } => {
  const staying = stayingInterfaces(server, claims)
  return {
    interfaces:
      staying.length === 0
        ? undefined
        : staying.map(({ id, networkId, macAddress, ipv4Address, ipv6Address }) => ({
            id,
            networkId,
            macAddress,
            ipv4Address,
            ipv6Address,
          })),
  }
}

/** Releases interfaces that the guest has given up, as reported by its host, once their ports are out of the network:
 *  the addresses may then be assigned again. Does nothing when no interface is leaving. */
export function releasedInterfaces(
  { accountId, claims, instance, targetInstance }: Observed,
  isProgrammed: boolean,
): readonly ServerAction[] {
  const leaving = claims?.interfaces?.filter(({ isLeaving }) => isLeaving) ?? []
  if (!isProgrammed || leaving.length === 0 || accountId === undefined || targetInstance !== undefined) return []
  const isGone = ({ id }: ClaimedInterface): boolean => {
    if (instance === undefined) return true
    const { spec, status, metadata } = instance
    return (
      !spec.interfaces.some(({ portName }) => portName === id) &&
      (status?.observedGeneration ?? -1) >= (metadata.generation ?? 0) &&
      status?.interfaces?.includes(id) !== true
    )
  }
  const departures = leaving.filter(isGone).map(({ id }) => id)
  return departures.length === 0 ? [] : [{ do: 'effect', name: 'leave', input: { accountId, ids: departures } }]
}
