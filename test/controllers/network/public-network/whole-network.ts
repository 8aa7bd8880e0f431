/** The public network of a zone with ports of servers, as the controllers bring it about from what is claimed. */
import { publicNetworkOwner, publicPortOwner } from '../../../../controllers/network/ovn/difference.ts'
import type { Ovn } from '../../../../controllers/network/ovn/ovn.ts'
import { openLinkLocals } from '../../../../controllers/network/public-network/port.ts'
import {
  portRows,
  type PublicNetwork,
  type PublicPort,
  rowsOf,
  type Subnet,
} from '../../../../controllers/network/public-network/topology.ts'

/** The networks of the ports, as if each were a pool for servers. */
export const subnetsOf = (ports: readonly PublicPort[]): readonly Subnet[] => [
  ...new Map(
    ports.flatMap(({ ipv4 }) => {
      if (ipv4 === undefined) return []
      const { cidr, prefix, gateway } = ipv4
      return [[cidr, { cidr, prefix, gateway, isForServers: true }]]
    }),
  ).values(),
]

/** Brings the network to these ports and no others. Answers the newest sequence. */
export async function bringWhole(
  ovn: Ovn,
  network: PublicNetwork,
  ports: readonly PublicPort[],
): Promise<{ readonly sequence: number }> {
  const { zone } = network
  const linkLocals = openLinkLocals(ovn)
  const subnets = [...subnetsOf(ports), ...network.subnets]
  const { sequence } = await ovn.apply({
    zone,
    owner: publicNetworkOwner(zone),
    rows: rowsOf({ ...network, subnets }),
  })
  const left = (await ovn.ownersIn(zone)).filter(
    (owner) => owner.startsWith(publicPortOwner('')) && !ports.some(({ name }) => publicPortOwner(name) === owner),
  )
  const written = await Promise.all([
    ...left.map((owner) => ovn.apply({ zone, owner, rows: [] })),
    ...ports.map(async (port) =>
      ovn.apply({
        zone,
        owner: publicPortOwner(port.name),
        rows: portRows(zone, await linkLocals.complete(zone, port)),
      }),
    ),
  ])
  return { sequence: Math.max(sequence, ...written.map((one) => one.sequence)) }
}
