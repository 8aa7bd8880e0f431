/** What the controller of hosts of control planes observes before it decides, and its actions. */
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

/** The settings of host clusters. */
export interface HostSettings {
  readonly publicIpv4: boolean
  /** Digest of what is applied in them. */
  readonly digest: string
}

export interface Observed {
  /** Undefined before it has secrets. */
  readonly row: MadeHostRow | undefined
  /** The settings, or why the host cannot be created, for people. */
  readonly settings: HostSettings | { readonly obstacle: string }
  readonly network: NetworkObject | undefined
  readonly cluster: ClusterObject | undefined
  readonly pools: readonly PoolObject[]
  /** Why it does not answer at its address, for people; empty when it answers, undefined before it has one. */
  readonly silence: string | undefined
  /** Control planes of existing clusters. */
  readonly clustersHosted: number
}

export interface HostId {
  /** Name of the object, and id of its row. */
  readonly id: string
}

/** The effects of hosts by name, each with its input. */
export type HostEffects = AuditEffects & {
  /** Creates its account and its secrets. */
  readonly claim: HostId
  /** Applies the host process in the cluster, and reports its state. */
  readonly install: HostId & { readonly digest: string }
  readonly register: HostId & { readonly url: string }
  /** Deletes its cluster, with the volumes and balancers that were created from inside it. */
  readonly dismantle: HostId & { readonly clusterId: string }
  readonly forget: HostId
}
export type HostAction = ActionWith<HostEffects>
