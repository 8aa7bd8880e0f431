/** What the controller of node pools observes before it decides, and its actions. */
import type { KindOf } from '../../../domain/operations.ts'
import type { ScalingPool } from '../../../domain/node-pool/autoscaling/judge.ts'
import type { Load } from '../../../domain/node-pool/autoscaling/load.ts'
import type { ClusterClaim } from '../../../db/kubernetes-cluster/index.ts'
import type { NodePoolDemand, NodePoolId } from '../../../db/node-pool/index.ts'
import type { KubernetesRequest } from '../../../db/request/index.ts'
import type {
  ControlPlaneNode,
  ControlPlaneState,
  NodeMarks,
  ServingRequest,
} from '../../../integrations/control-planes/control.ts'
import type { KubeObject } from '../../../kit/kube/object.ts'
import type { KubernetesClusterSpec, KubernetesClusterStatus } from '../../../resources/kubernetes-cluster/index.ts'
import type { NodePoolSpec, NodePoolStatus } from '../../../resources/node-pool/index.ts'
import type { AuditEffects } from '../../kit/audit.ts'
import type { ActionWith } from '../../kit/effects.ts'
import type { MadeInput } from '../../kit/made-plan.ts'
import type { Machine, MachineEffects } from '../managed-machine/index.ts'
import type { During } from '../../kit/operation/plan.ts'
import type { SyncDecision } from '../../kit/synced.ts'

export type NodePoolObject = KubeObject<NodePoolSpec, NodePoolStatus>
export type ClusterObject = KubeObject<KubernetesClusterSpec, KubernetesClusterStatus>

/** The report of the control plane, while its API answers. */
export interface ApiView {
  readonly plane: ControlPlaneState
  /** Available releases of Kubernetes, newest last. */
  readonly releases: readonly string[]
  /** All nodes of the cluster, also of other pools. */
  readonly nodes: readonly ControlPlaneNode[]
  /** Requests for serving certificates of kubelets in the cluster. */
  readonly requests: readonly ServingRequest[]
}

/** The input of autoscaling: the load of the cluster, all its pools, and since when which nodes are under-used. */
export interface Scaling {
  readonly load: Load
  readonly pools: readonly ScalingPool[]
  readonly underusedSince: ReadonlyMap<string, string>
}

export interface Observed {
  /** Undefined when the namespace is no account's. */
  readonly accountId: string | undefined
  readonly isClaimed: boolean
  /** The account may create more of what costs. */
  readonly mayGrow: boolean
  /** Undefined when it does not exist. */
  readonly cluster: ClusterObject | undefined
  /** The claim of the cluster. */
  readonly clusterClaim: ClusterClaim | undefined
  readonly region: string
  /** The report of the cluster, or why there is none, for people. */
  readonly api: ApiView | { readonly obstacle: string }
  /** Its servers, including those that are being deleted. */
  readonly machines: readonly Machine[]
  /** Names of Servers that are missing without an order: claims or guests of them are left. */
  readonly lost: readonly string[]
  /** Names of Servers in its status that no longer exist, and whose deletion was ordered. */
  readonly removed: readonly string[]
  /** Undefined for a pool without autoscaling or with an operation under way, and while the cluster does not report. */
  readonly scaling: Scaling | undefined
  /** Numbers of nodes of which anything exists. */
  readonly numbersInUse: readonly number[]
  /** Edits that start no operation. */
  readonly edits: readonly KubernetesRequest[]
  /** The actor of the edit that has no operation. */
  readonly editor: string
}

/** The effects of node pools by name, each with its input. */
export type NodePoolEffects = AuditEffects &
  MachineEffects & {
    readonly claim: NodePoolDemand
    /** Creates a bootstrap token in the cluster, and records it. */
    readonly issue: { readonly tokenId: string }
    readonly revoke: { readonly tokenId: string }
    readonly approve: { readonly requests: readonly string[] }
    readonly mark: { readonly names: readonly string[]; readonly marks: NodeMarks }
    /** Evicts the pods of these nodes, and records the progress beside the known drains. */
    readonly drain: { readonly names: readonly string[]; readonly known: readonly Drain[] }
    /** Makes nodes that autoscaling has released accept pods again, and records that they stay. */
    readonly keep: { readonly names: readonly string[]; readonly known: readonly Drain[] }
    /** Removes nodes without a server from the cluster. */
    readonly forget: { readonly names: readonly string[] }
    /** Releases all that it has claimed. */
    readonly release: NodePoolId
  }
export type Drain = NonNullable<NodePoolStatus['drains']>[number]
export type NodePoolEffect = ActionWith<NodePoolEffects>

/** Whether PostgreSQL granted the claims of the pool. */
export const CLAIMED = 'Claimed'

export type Input = MadeInput<NodePoolObject, Observed>
export type OperationInput = During<Input>
export type Decision = SyncDecision<NodePoolStatus, NodePoolEffect, KindOf<'node_pool'>>

export const apiOf = ({ api }: Observed): ApiView | undefined => ('obstacle' in api ? undefined : api)
