/** The network controller: the public network of each zone in OVN follows the instances that run there. It has a root,
 *  the Zone, and no status of its own: what guests are told of their addresses is not said by whether the network was
 *  brought there yet. */
import { createHash } from 'node:crypto'
import { canonicalAddress, canonicalCidr, formatNetwork, parseAddress } from '../../domain/addresses.ts'
import { watch } from '../../kit/reconcile/reconciler.ts'
import type { KubeObject } from '../../kit/kube/object.ts'
import {
  Instance,
  type InstanceSpec,
  type InstanceStatus,
  nodeOf,
  nodeOfNamespace,
} from '../../resources/instance/index.ts'
import { Zone, type ZoneSpec, type ZoneStatus } from '../../resources/catalog/index.ts'
import { Node, type NodeSpec, type NodeStatus } from '../../resources/node/index.ts'
import { controller } from '../controller.ts'
import type { ActionWith } from '../effects.ts'
import type { Parts } from '../parts.ts'
import { converge, heldAddresses } from './converge.ts'
import { withLinkLocals } from './link-local.ts'
import type { Ovsdb } from './ovsdb.ts'
import { type Outside, type PublicNetwork, type PublicPort, rowsOf } from './topology.ts'

type InstanceObject = KubeObject<InstanceSpec, InstanceStatus>

export { openOvsdb, type Ovsdb } from './ovsdb.ts'

export interface Observed {
  readonly network: PublicNetwork
  /** The network as it was brought about last by this process; undefined before. */
  readonly appliedDigest: string | undefined
}

/** The database is looked at again however little has changed: somebody else may have changed it. */
const LOOK_SECONDS = 300

/** The effects of the network of a zone. */
interface NetworkEffects {
  readonly converge: { readonly network: PublicNetwork; readonly digest: string; readonly at: string }
}
type NetworkAction = ActionWith<NetworkEffects>

const ZONE_INDEX = 'zone'

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

export const networkController = controller<NetworkEffects>()({
  name: 'network',
  resource: Zone,
  sharding: 'zones',
  plan,
  /** Undefined without the northbound database of OVN: guests are in no network of the zone then. */
  open({ caches, northbound }: Parts & { readonly northbound?: Ovsdb }) {
    if (northbound === undefined) return undefined
    const instances = caches.of(Instance)
    instances.addIndex(ZONE_INDEX, ({ spec }) => [spec.metadata.zone])
    const applied = new Map<string, { readonly digest: string; readonly until: number }>()
    return {
      watches: [
        watch(Instance, ({ spec }) => [{ name: spec.metadata.zone }]),
        watch(Node, ({ spec }) => [{ name: spec.zone }]),
      ],
      observe({ metadata: { name }, spec }, now) {
        const last = applied.get(name)
        const nodes = caches
          .of(Node)
          .list()
          .filter((node) => node.spec.zone === name)
        return {
          network: networkOf(name, spec, instances.by(ZONE_INDEX, name), nodes),
          appliedDigest: last !== undefined && now.getTime() < last.until ? last.digest : undefined,
        }
      },
      effects: {
        async converge({ network, digest, at }) {
          await applyNetwork(northbound, network)
          applied.set(network.zone, { digest, until: Date.parse(at) + LOOK_SECONDS * 1_000 })
          return undefined
        },
      },
    }
  },
})

/** Brings the network about; answers how many operations it took. */
export async function applyNetwork(northbound: Ovsdb, network: PublicNetwork): Promise<number> {
  return converge(
    northbound,
    network.zone,
    rowsOf(withLinkLocals(network, await heldAddresses(northbound, network.zone))),
  )
}

/** A guest that moves has an instance on two nodes. */
export function networkOf(
  zone: string,
  { publicNetwork }: ZoneSpec,
  instances: readonly InstanceObject[],
  nodes: readonly KubeObject<NodeSpec, NodeStatus>[],
): PublicNetwork {
  const byName = Map.groupBy(
    instances.filter(({ metadata }) => nodeOfNamespace(metadata.namespace ?? '') !== undefined),
    ({ metadata }) => metadata.name,
  )
  const gateways = nodes.filter(({ status }) => status?.state === 'ready' || status?.state === 'cordoned')
  const ofNetwork = gateways.filter(({ spec }) => spec.roles.includes('network'))
  return {
    zone,
    ports: [...byName.values()].flatMap(portOf).sort((one, other) => (one.name < other.name ? -1 : 1)),
    ...(publicNetwork === undefined ? {} : { outside: canonicalOutside(publicNetwork) }),
    gatewayNodes: (ofNetwork.length > 0 ? ofNetwork : gateways).map(({ metadata }) => metadata.name).sort(),
  }
}

/** OVN compares texts: another form of the same address would be another row. */
const canonicalOutside = ({ physicalNetwork, addresses, gateways }: Outside): Outside => ({
  physicalNetwork,
  addresses: [...new Set(addresses.map(canonicalCidr))],
  gateways: [...new Set(gateways.map(canonicalAddress))],
})

/** Where the guest is comes first, where it goes to second. */
function portOf(instances: readonly InstanceObject[]): readonly PublicPort[] {
  const [first, ...others] = instances.toSorted(
    (one, other) => Number(one.spec.receive !== undefined) - Number(other.spec.receive !== undefined),
  )
  const own = first?.spec.interfaces.find(({ kind }) => kind === 'public')
  if (first === undefined || own === undefined) return []
  return [
    {
      name: first.metadata.name,
      macAddress: own.macAddress,
      ipv6Prefixes: own.routedPrefixes ?? [],
      ...(own.ipv4 === undefined ? {} : { ipv4: { ...own.ipv4, cidr: cidrOf(own.ipv4.address, own.ipv4.prefix) } }),
      nodes: [first, ...others].map(nodeOf),
    },
  ]
}

const IPV4_BITS = 32n

function cidrOf(address: string, prefix: number): string {
  const hosts = IPV4_BITS - BigInt(prefix)
  return formatNetwork({ family: 'ipv4', first: ((parseAddress(address)?.value ?? 0n) >> hosts) << hosts, prefix })
}
