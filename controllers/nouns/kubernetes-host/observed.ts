/** What the controller of hosts of control planes knows of the world when it decides, and what it may decide. */
import type { MadeHostRow } from '../../../db/kubernetes-host/index.ts'
import type { KubeObject } from '../../../kit/kube/object.ts'
import type { KubernetesClusterSpec, KubernetesClusterStatus } from '../../../resources/kubernetes-cluster/index.ts'
import type { KubernetesHostSpec, KubernetesHostStatus } from '../../../resources/kubernetes-host/index.ts'
import type { NetworkSpec, NetworkStatus } from '../../../resources/network/index.ts'
import type { NodePoolSpec, NodePoolStatus } from '../../../resources/node-pool/index.ts'
import type { AuditEffects } from '../../kit/audit.ts'
import type { ActionWith } from '../../kit/effects.ts'

export type HostObject = KubeObject<KubernetesHostSpec, KubernetesHostStatus>
export type NetworkObject = KubeObject<NetworkSpec, NetworkStatus>
export type ClusterObject = KubeObject<KubernetesClusterSpec, KubernetesClusterStatus>
export type PoolObject = KubeObject<NodePoolSpec, NodePoolStatus>

/** What the settings say of host clusters. */
export interface HostSettings {
  readonly publicIpv4: boolean
  /** Of what is applied in them. */
  readonly digest: string
}

export interface Observed {
  /** Undefined before it has secrets. */
  readonly row: MadeHostRow | undefined
  /** Or why it cannot be made, for people. */
  readonly settings: HostSettings | { readonly obstacle: string }
  readonly network: NetworkObject | undefined
  readonly cluster: ClusterObject | undefined
  readonly pools: readonly PoolObject[]
  /** Why it is not spoken to at its address, for people; empty when it answers, undefined before it has one. */
  readonly silence: string | undefined
  /** Control planes of clusters that are there. */
  readonly clustersHosted: number
}

export interface HostId {
  /** Name of the object, and id of its row. */
  readonly id: string
}

/** The effects of hosts by name, each with its input. */
export type HostEffects = AuditEffects & {
  /** The account that it belongs to, and its secrets. */
  readonly claim: HostId
  /** Applies the host process in the cluster, and reports how it is. */
  readonly install: HostId & { readonly digest: string }
  readonly register: HostId & { readonly url: string }
  /** Its cluster goes, with the volumes and balancers that were made from inside it. */
  readonly dismantle: HostId & { readonly clusterId: string }
  readonly forget: HostId
}
export type HostAction = ActionWith<HostEffects>
