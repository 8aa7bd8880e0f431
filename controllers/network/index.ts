/** The network controller: the public network of each zone in OVN follows the instances that run there. It has a root,
 *  the Zone, and no status of
 *  its own: what guests are told of their addresses is not said by whether the network was brought there yet. */
import { createHash } from 'node:crypto'
import { canonicalAddress, canonicalCidr, formatNetwork, parseAddress } from '../../domain/addresses.ts'
import type { Action } from '../../kit/reconcile/action.ts'
import { type Effect, type Reconciler, watch } from '../../kit/reconcile/reconciler.ts'
import type { KubeObject } from '../../kit/kube/object.ts'
import {
  Instance,
  type InstanceSpec,
  type InstanceStatus,
  nodeOf,
  nodeOfNamespace,
} from '../../resources/instance/index.ts'
import { Node, type NodeSpec, type NodeStatus } from '../../resources/node/index.ts'
import { Zone, type ZoneSpec, type ZoneStatus } from '../../resources/catalog/index.ts'
import type { Parts } from '../parts.ts'
import { converge, heldAddresses } from './converge.ts'
import { withLinkLocals } from './link-local.ts'
import type { Ovsdb } from './ovsdb.ts'
import { type Outside, type PublicNetwork, type PublicPort, rowsOf } from './topology.ts'

type InstanceObject = KubeObject<InstanceSpec, InstanceStatus>

export interface Observed {
  readonly network: PublicNetwork
  /** The network as it was brought about last by this process; undefined before. */
  readonly appliedDigest: string | undefined
}

/** The database is looked at again however little has changed: somebody else may have changed it. */
const LOOK_SECONDS = 300

export function networkReconciler({ caches }: Parts, northbound: Ovsdb): Reconciler<ZoneSpec, ZoneStatus, Observed> {
  const instances = caches.of(Instance)
  const nodes = caches.of(Node)
  instances.addIndex(ZONE_INDEX, ({ spec }) => [spec.metadata.zone])
  const brought = new Map<string, { readonly digest: string; readonly until: number }>()
  return {
    name: 'network',
    type: Zone,
    watches: [
      watch(Instance, ({ spec }) => [{ name: spec.metadata.zone }]),
      watch(Node, ({ spec }) => [{ name: spec.zone }]),
    ],
    observe: ({ metadata: { name }, spec }, now) => {
      const last = brought.get(name)
      return {
        network: networkOf(
          name,
          spec,
          instances.by(ZONE_INDEX, name),
          nodes.list().filter((node) => node.spec.zone === name),
        ),
        appliedDigest: last !== undefined && now.getTime() < last.until ? last.digest : undefined,
      }
    },
    plan,
    effects: {
      converge: convergeEffect(northbound, (zone, digest, now) =>
        brought.set(zone, { digest, until: now.getTime() + LOOK_SECONDS * 1_000 }),
      ),
    },
  }
}
const ZONE_INDEX = 'zone'

export function plan(
  _zone: KubeObject<ZoneSpec, ZoneStatus>,
  { network, appliedDigest }: Observed,
  now: Date,
): readonly Action[] {
  const digest = createHash('sha256').update(JSON.stringify(network)).digest('hex')
  const wait: Action = { do: 'wait', seconds: LOOK_SECONDS, for: 'the network to change' }
  return digest === appliedDigest
    ? [wait]
    : [{ do: 'effect', name: 'converge', input: { network, digest, at: now.toISOString() } }, wait]
}

const convergeEffect =
  (northbound: Ovsdb, note: (zone: string, digest: string, now: Date) => void): Effect =>
  async (input) => {
    const { network, digest, at } = input as unknown as {
      readonly network: PublicNetwork
      readonly digest: string
      readonly at: string
    } // the plan above writes it
    await applyNetwork(northbound, network)
    note(network.zone, digest, new Date(at))
    return undefined
  }

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
