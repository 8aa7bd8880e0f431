/** What the controller of node pools knows of the world when it decides, and what it may decide. */
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

/** What the control plane says, while its API answers. */
export interface ApiView {
  readonly plane: ControlPlaneState
  /** Releases of Kubernetes that there are, newest last. */
  readonly releases: readonly string[]
  /** All of the cluster, also of other pools. */
  readonly nodes: readonly ControlPlaneNode[]
  /** For certificates that kubelets of the cluster serve with. */
  readonly requests: readonly ServingRequest[]
}

/** What autoscaling looks at: the load of the cluster, all pools of it, and since when which nodes are under-used. */
export interface Scaling {
  readonly load: Load
  readonly pools: readonly ScalingPool[]
  readonly underusedSince: ReadonlyMap<string, string>
}

export interface Observed {
  /** Undefined when the namespace is no account's. */
  readonly accountId: string | undefined
  readonly isClaimed: boolean
  /** The account may make more of what costs. */
  readonly mayGrow: boolean
  /** Undefined when it is not there. */
  readonly cluster: ClusterObject | undefined
  /** What is claimed for the cluster. */
  readonly clusterClaim: ClusterClaim | undefined
  readonly region: string
  /** Why nothing is known of the nodes, for people, when nothing is. */
  readonly api: ApiView | { readonly obstacle: string }
  /** Its servers, also those that are on their way out. */
  readonly machines: readonly Machine[]
  /** Undefined for a pool that does not scale by itself, or is busy, and while the cluster does not say. */
  readonly scaling: Scaling | undefined
  /** Numbers of nodes of which there is something. */
  readonly taken: readonly number[]
  /** Edits that start no operation. */
  readonly edits: readonly KubernetesRequest[]
  /** Who made the edit that no operation stands for, as an actor. */
  readonly editor: string
}

/** The effects of node pools by name, each with its input. */
export type NodePoolEffects = AuditEffects &
  MachineEffects & {
    readonly claim: NodePoolDemand
    /** Has the cluster take a bootstrap token, and notes it. */
    readonly issue: { readonly tokenId: string }
    readonly revoke: { readonly tokenId: string }
    readonly approve: { readonly requests: readonly string[] }
    readonly mark: { readonly names: readonly string[]; readonly marks: NodeMarks }
    /** Asks the pods of these nodes to go, and notes how far they are beside what is known of them and others. */
    readonly drain: { readonly names: readonly string[]; readonly known: readonly Drain[] }
    /** Has nodes take pods again that autoscaling has let go, and notes that they stay. */
    readonly keep: { readonly names: readonly string[]; readonly known: readonly Drain[] }
    /** Takes nodes out of the cluster whose servers have gone. */
    readonly forget: { readonly names: readonly string[] }
    /** Gives back all that it has claimed. */
    readonly release: NodePoolId
  }
export type Drain = NonNullable<NodePoolStatus['drains']>[number]
export type NodePoolEffect = ActionWith<NodePoolEffects>

/** What PostgreSQL was asked for a pool, and whether it was granted. */
export const CLAIMED = 'Claimed'

export type Input = MadeInput<NodePoolObject, Observed>
export type OperationInput = During<Input>
export type Decision = SyncDecision<NodePoolStatus, NodePoolEffect, KindOf<'node_pool'>>

export const apiOf = ({ api }: Observed): ApiView | undefined => ('obstacle' in api ? undefined : api)
