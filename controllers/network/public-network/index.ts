/** The controller of public networks: the rows that a zone has once in OVN. Its root is the Zone, whose status it does
 *  not write. The controller in `port.ts` writes the rows of each server, so that a change of one server costs no
 *  other. Periodically this one removes ports that the other has left behind. */
import { createHash } from 'node:crypto'
import { canonicalAddress, canonicalCidr, parseNetwork } from '../../../domain/network/addresses.ts'
import { gatewayOf } from '../../../domain/network/rules.ts'
import { listPools } from '../../../db/public-pool/index.ts'
import { wasRemovalOrdered } from '../../../db/removal/index.ts'
import { findServerClaims } from '../../../db/server/index.ts'
import { watch } from '../../../kit/reconcile/reconciler.ts'
import type { KubeObject } from '../../../kit/kube/object.ts'
import { accountOfNamespace } from '../../../resources/index.ts'
import { Zone, type ZoneSpec, type ZoneStatus } from '../../../resources/catalog/index.ts'
import { Node } from '../../../resources/node/index.ts'
import { PublicPool, type PublicPoolSpec } from '../../../resources/public-pool/index.ts'
import { Server } from '../../../resources/server/index.ts'
import { controller } from '../../kit/controller.ts'
import { orUnavailable } from '../../kit/outage.ts'
import type { ActionWith } from '../../kit/effects.ts'
import { gatewayNodes } from '../gateway-nodes.ts'
import type { Parts } from '../../kit/parts.ts'
import { publicNetworkOwner, publicPortOwner } from '../ovn/difference.ts'
import { type Outside, type PublicNetwork, rowsOf, type Subnet } from './topology.ts'

export { publicPortController } from './port.ts'

export interface Observed {
  readonly network: PublicNetwork
  /** The network that this process last applied; undefined before. */
  readonly appliedDigest: string | undefined
}

/** The database is checked again even without a change: another writer may have changed it. */
const LOOK_SECONDS = 300

/** The effects of the public network of a zone. */
interface NetworkEffects {
  readonly converge: { readonly network: PublicNetwork; readonly digest: string; readonly at: string }
}
type NetworkAction = ActionWith<NetworkEffects>

export function plan(
  _zone: KubeObject<ZoneSpec, ZoneStatus>,
  { network, appliedDigest }: Observed,
  now: Date,
): readonly NetworkAction[] {
  const digest = createHash('sha256').update(JSON.stringify(network)).digest('hex')
  const wait: NetworkAction = { do: 'wait', seconds: LOOK_SECONDS, for: 'the network to change' }
  return digest === appliedDigest
    ? [wait]
    : [{ do: 'effect', name: 'converge', input: { network, digest, at: now.toISOString() } }, wait]
}

export const publicNetworkController = controller<NetworkEffects>()({
  name: 'public-network',
  resource: Zone,
  sharding: 'zones',
  plan,
  reads: [Server, Node, PublicPool],
  writes: [],
  /** Undefined without OVN: guests are in no network of the zone then. */
  open(parts: Parts) {
    const { caches, ovn } = parts
    if (ovn === undefined) return undefined
    const applied = new Map<string, { readonly digest: string; readonly until: number }>()
    return {
      watches: [
        watch(Node, ({ spec }) => [{ name: spec.zone }]),
        watch(PublicPool, ({ spec }) => [{ name: spec.zone }]),
        watch(Server, () => []),
      ],
      async observe({ metadata: { name }, spec }, now) {
        const last = applied.get(name)
        const pools = [
          ...caches
            .of(PublicPool)
            .list()
            .filter((pool) => pool.spec.zone === name),
          ...(await missingPools(parts, name)),
        ]
        return {
          network: networkOf(name, spec, { pools, gatewayNodes: gatewayNodes(caches, name) }),
          appliedDigest: last !== undefined && now.getTime() < last.until ? last.digest : undefined,
        }
      },
      effects: {
        async converge({ network, digest, at }) {
          const { zone } = network
          await ovn.apply({ zone, owner: publicNetworkOwner(zone), rows: rowsOf(network) })
          await removeLeftPorts(parts, zone)
          applied.set(zone, { digest, until: Date.parse(at) + LOOK_SECONDS * 1_000 })
          return undefined
        },
      },
    }
  },
})

/** Pools of the zone that have no object and were not deleted: the deletion of a pool deletes its row. Kubernetes may
 *  have been restored from an older state, and servers have addresses of these pools. */
const missingPools = async (
  { db, caches }: Pick<Parts, 'db' | 'caches'>,
  zone: string,
): Promise<readonly { readonly spec: PoolSubnet }[]> =>
  (await orUnavailable(listPools(db, zone)))
    .filter(({ id }) => caches.of(PublicPool).get({ name: id }) === undefined)
    .map((spec) => ({ spec }))

type PoolSubnet = Pick<PublicPoolSpec, 'family' | 'use' | 'cidr' | 'gateway'>

/** Ports of servers whose claims are in another zone, or that were deleted, for example when a process stopped during
 *  their removal. Other ports stay: PostgreSQL may have been restored from an older state, and their guests still
 *  run. */
async function removeLeftPorts(parts: Parts, zone: string): Promise<void> {
  const { db, caches, ovn } = parts
  const owners = (await ovn?.ownersIn(zone))?.filter((owner) => owner.startsWith(publicPortOwner(''))) ?? []
  if (owners.length === 0) return
  const servers = new Map(
    caches
      .of(Server)
      .list()
      .map((server) => [server.metadata.uid ?? '', server]),
  )
  const hasLeft = async (uid: string): Promise<boolean> => {
    const { namespace = '', name = '' } = servers.get(uid)?.metadata ?? {}
    const accountId = accountOfNamespace(namespace)
    if (accountId === undefined) return await orUnavailable(wasRemovalOrdered(db, uid))
    const claims = await orUnavailable(findServerClaims(db, { accountId, serverId: name }))
    return claims !== undefined && ![claims.placement.zone, claims.target?.zone].includes(zone)
  }
  for (const owner of owners)
    if (await hasLeft(owner.slice(publicPortOwner('').length))) await ovn?.apply({ zone, owner, rows: [] })
}

export function networkOf(
  zone: string,
  { publicNetwork }: ZoneSpec,
  {
    pools,
    gatewayNodes,
  }: {
    readonly pools: readonly { readonly spec: PoolSubnet }[]
    readonly gatewayNodes: readonly string[]
  },
): PublicNetwork {
  return {
    zone,
    ...(publicNetwork === undefined ? {} : { outside: canonicalOutside(publicNetwork) }),
    subnets: pools.flatMap(({ spec }) => subnetOf(spec)).sort((one, other) => (one.cidr < other.cidr ? -1 : 1)),
    gatewayNodes,
  }
}

/** IPv6 networks are not among them: prefixes are routed to their servers. */
function subnetOf({ family, use, cidr, gateway }: PoolSubnet): readonly Subnet[] {
  const network = parseNetwork(cidr)
  if (family === 'ipv6' || network === undefined) return []
  return [
    {
      cidr: canonicalCidr(cidr),
      prefix: network.prefix,
      gateway: canonicalAddress(gateway ?? gatewayOf(cidr)),
      isForServers: use === 'server_ipv4',
    },
  ]
}

/** OVN compares texts: another form of the same address would be another row. */
const canonicalOutside = ({ physicalNetwork, addresses, gateways, dnsServers }: Outside): Outside => ({
  physicalNetwork,
  addresses: [...new Set(addresses.map(canonicalCidr))],
  gateways: [...new Set(gateways.map(canonicalAddress))],
  dnsServers: dnsServers && [...new Set(dnsServers.map(canonicalAddress))],
})
