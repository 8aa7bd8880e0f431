/** The nodes of a pool: which exist and which are desired, the servers and configurations of nodes, and their state in
 *  the cluster. Each has a number, starting at 0, and with it the same name for as long as the pool exists. Pure. */
import { newestRelease, minorOf } from '../../../domain/kubernetes-cluster/rules.ts'
import { KUBERNETES_NODE_TEMPLATE } from '../../../domain/managed-machine/rules.ts'
import { nodeNameOf, nodeNumberOf } from '../../../domain/node-pool/rules.ts'
import {
  type ControlPlaneNode,
  DNS_SERVICE_NUMBER,
  NODE_API,
  type NodeMarks,
  serviceAddress,
} from '../../../integrations/control-planes/control.ts'
import type { MachineDocumentParts } from '../../../resources/managed-machine/index.ts'
import { NodePool } from '../../../resources/node-pool/index.ts'
import {
  configurationFingerprint,
  type Machine,
  type MachineDemand,
  machineName,
  type Owner,
} from '../managed-machine/index.ts'
import { apiOf, type NodePoolObject, type Observed } from './observed.ts'

/** The labels that describe a node, as Kubernetes and the platform name them. */
const POOL_LABEL = 'svccloud.dev/node-pool'
const ZONE_LABEL = 'topology.kubernetes.io/zone'
const REGION_LABEL = 'topology.kubernetes.io/region'
const PLAN_LABEL = 'node.kubernetes.io/instance-type'
/** The fingerprint alone identifies the configuration of a node. */
const GENERATION = 1

export function nodePoolOwner({ metadata, spec }: NodePoolObject, accountId: string): Owner {
  const { name: id, namespace = '', uid = '' } = metadata
  return { type: 'node_pool', id, uid, namespace, accountId, zone: spec.zone, resource: NodePool }
}

export interface Slot {
  readonly number: number
  readonly role: string
  /** Of the node, and of its server. */
  readonly name: string
  /** A node with this number is desired, this one or its replacement. */
  readonly isWanted: boolean
  /** Autoscaling has released it. */
  readonly isLetGo: boolean
  readonly machine: Machine | undefined
  readonly node: ControlPlaneNode | undefined
  readonly serverId: string
  /** Its server does not exist, and its deletion was ordered: that server, and no earlier one of its name. */
  readonly isServerRemoved: boolean
  /** Its server does not exist, nobody ordered that, and its node, its claims or its guest are left. */
  readonly isMissing: boolean
}

const roleOf = (number: number): string => `n${number}`
const numberOf = (role: string): number | undefined => {
  const text = /^n(\d{1,3})$/.exec(role)?.[1]
  return text === undefined ? undefined : Number(text)
}

/** The first numbers from 0 on, without those that autoscaling has released. */
export function wantedNumbers({ spec }: NodePoolObject, count: number): ReadonlySet<number> {
  const wanted = new Set<number>()
  for (let number = 0; wanted.size < count; number++) if (spec.skipped?.includes(number) !== true) wanted.add(number)
  return wanted
}

/** The desired and the existing nodes, by number. */
export function slotsOf(pool: NodePoolObject, observed: Observed, count: number): readonly Slot[] {
  const { metadata, spec } = pool
  const named = { name: spec.name, uid: metadata.uid ?? '', type: 'node_pool' } as const
  const nodes = apiOf(observed)?.nodes ?? []
  const wanted = wantedNumbers(pool, count)
  const numbers = new Set([
    ...wanted,
    ...observed.machines.flatMap(({ role }) => numberOf(role) ?? []),
    ...nodes.flatMap((node) => nodeNumberOf(named, node.name) ?? []),
  ])
  return [...numbers]
    .toSorted((one, other) => one - other)
    .map((number) => {
      const [role, name] = [roleOf(number), nodeNameOf(named, number)]
      const serverId = machineName(named, role)
      const machine = observed.machines.find((each) => each.serverId === serverId)
      const node = nodes.find((each) => each.name === name)
      const isLetGo = spec.skipped?.includes(number) === true
      const isServerRemoved = machine === undefined && observed.removed.includes(serverId)
      const isLeft = node !== undefined || observed.lost.includes(serverId)
      const isMissing = machine === undefined && !isServerRemoved && isLeft
      const isWanted = wanted.has(number)
      return { number, role, name, isWanted, isLetGo, machine, node, serverId, isServerRemoved, isMissing }
    })
}

/** Numbers of nodes of which anything exists. */
export function takenNumbers(
  { metadata, spec }: NodePoolObject,
  machines: Observed['machines'],
  api: Observed['api'],
): readonly number[] {
  const named = { name: spec.name, uid: metadata.uid ?? '' }
  const nodes = 'obstacle' in api ? [] : api.nodes
  return [
    ...machines.flatMap(({ role }) => numberOf(role) ?? []),
    ...nodes.flatMap(({ name }) => nodeNumberOf(named, name) ?? []),
  ]
}

/** `1.36.3` of `v1.36.3`. */
export const releaseOf = ({ kubeletVersion }: Pick<ControlPlaneNode, 'kubeletVersion'>): string =>
  kubeletVersion.replace(/^v/, '').replace(/[-+].*$/, '')

/** It runs another minor version than the pool's. */
export const isOutdated = ({ spec }: NodePoolObject, { node }: Slot): boolean =>
  node !== undefined && node.kubeletVersion !== '' && minorOf(releaseOf(node)) !== spec.version

/** The labels and taints of every node of the pool in the cluster. */
export function marksOf({ spec }: NodePoolObject, region: string): NodeMarks {
  const labels = {
    ...spec.labels,
    [POOL_LABEL]: spec.name,
    [ZONE_LABEL]: spec.zone,
    [PLAN_LABEL]: spec.plan,
    ...(region === '' ? {} : { [REGION_LABEL]: region }),
  }
  const taints = spec.taints.map(({ key, value, effect }) => ({ key, value, effect }))
  return { labels, taints, digest: configurationFingerprint([labels, taints]) }
}

const addressIn = (machine: Machine | undefined, networkId: string) =>
  machine?.interfaces.find((each) => each.networkId === networkId)

/** All addresses of the node's server, as certificates may contain them. */
export const addressesOf = ({ publicIpv4, publicIpv6, interfaces }: Machine): readonly string[] =>
  [publicIpv4, publicIpv6, ...interfaces.flatMap((each) => [each.ipv4Address, each.ipv6Address])].filter(
    (address): address is string => address !== undefined && address !== '',
  )

/** Addresses of its public interface: a server with its own prefix requests no address in it. The node reaches its
 *  control plane through them. */
const publicAddressesOf = ({
  publicIpv6,
  publicMacAddress,
}: Pick<Machine, 'publicIpv6' | 'publicMacAddress'>): NonNullable<MachineDocumentParts['addresses']> =>
  publicIpv6 === undefined || publicMacAddress === undefined
    ? []
    : [{ interface: publicMacAddress, address: `${publicIpv6}/128` }]

type Kubernetes = NonNullable<MachineDocumentParts['kubernetes']>

/** The document for the server of the node, without what it joins with; undefined while it is incomplete. */
export function nodeDocument(
  pool: NodePoolObject,
  observed: Observed,
  slot: Slot,
): (Pick<MachineDocumentParts, 'addresses'> & { readonly kubernetes: Kubernetes }) | undefined {
  const kubernetes = kubernetesOf(pool, observed, slot)
  return kubernetes === undefined || slot.machine === undefined
    ? undefined
    : { addresses: publicAddressesOf(slot.machine), kubernetes }
}

function kubernetesOf(pool: NodePoolObject, observed: Observed, slot: Slot): Kubernetes | undefined {
  const { cluster, clusterClaim } = observed
  const api = apiOf(observed)
  const { machine } = slot
  const at = addressIn(machine, cluster?.spec.networkId ?? '')
  if (api === undefined || clusterClaim === undefined || machine === undefined || at === undefined) return undefined
  const { forNodes, certificateAuthority } = api.plane
  const release = runningRelease(slot, api.releases) ?? newestRelease(pool.spec.version, api.releases)
  const dns = serviceAddress(clusterClaim.serviceCidr, DNS_SERVICE_NUMBER)
  if (forNodes === null || certificateAuthority === null || release === undefined || dns === undefined) return undefined
  return {
    release,
    nodeName: slot.name,
    nodeAddress: at.ipv4Address,
    endpoint: forNodes.endpoint,
    tunnel: forNodes.tunnel,
    localApi: NODE_API,
    certificateAuthority,
    volumes: { serverId: machine.serverId, zone: pool.spec.zone },
    podCidr: clusterClaim.podCidr,
    serviceCidr: clusterClaim.serviceCidr,
    dnsAddress: dns,
    taints: pool.spec.taints.map(({ key, value, effect }) => ({ key, value, effect })),
    routes: api.nodes
      .filter(({ name, address, podCidr }) => name !== slot.name && address !== '' && podCidr !== '')
      .map(({ podCidr: to, address: via }) => ({ to, via }))
      .toSorted((one, other) => (one.to < other.to ? -1 : 1)),
  }
}

/** A node that has joined keeps its release until it is replaced. */
const runningRelease = ({ node }: Slot, releases: readonly string[]): string | undefined => {
  const release = node && releaseOf(node)
  return release !== undefined && releases.includes(release) ? release : undefined
}

/** The demand for the server of the node. Until the node has joined, its join token is part of the demand. */
export function nodeDemand(pool: NodePoolObject, observed: Observed, slot: Slot): MachineDemand {
  const { spec, status } = pool
  const networkId = observed.cluster?.spec.networkId ?? ''
  const document = nodeDocument(pool, observed, slot)
  const tokenId = slot.node === undefined ? status?.join?.tokenId : ''
  const podCidr = slot.node?.podCidr ?? ''
  return {
    role: slot.role,
    hostname: slot.name,
    plan: spec.plan,
    template: KUBERNETES_NODE_TEMPLATE,
    publicIpv4: spec.publicIpv4,
    networkIds: [networkId],
    keepsPower: true,
    // Its pods send through its port with their own addresses.
    sharedAddresses: podCidr === '' ? [] : [{ address: podCidr, networkId }],
    configuration:
      document === undefined || tokenId === undefined
        ? undefined
        : { generation: GENERATION, fingerprint: configurationFingerprint([document, tokenId]) },
  }
}
