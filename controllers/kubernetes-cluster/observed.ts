/** What the controller of Kubernetes clusters knows of the world when it decides, and what it may decide. */
import type { ClusterClaim, ClusterId, ClusterSnapshot } from '../../db/kubernetes-cluster/index.ts'
import type { KubernetesRequest } from '../../db/request/index.ts'
import type {
  ControlPlaneNode,
  ControlPlaneOffer,
  ControlPlaneSnapshot,
  ControlPlaneState,
} from '../../kit/control-planes/control.ts'
import type { KubeObject } from '../../kit/kube/object.ts'
import type { KubernetesClusterSpec, KubernetesClusterStatus } from '../../resources/kubernetes-cluster/index.ts'
import type { NodePoolSpec, NodePoolStatus } from '../../resources/node-pool/index.ts'
import type { AuditEffects } from '../audit.ts'
import type { ActionWith } from '../effects.ts'
import { type MadeInput } from '../made-plan.ts'
import type { During } from '../operation/plan.ts'
import { type SyncDecision } from '../synced.ts'

export type ClusterObject = KubeObject<KubernetesClusterSpec, KubernetesClusterStatus>

/** What the host of its control plane says of it. */
export interface HostView {
  readonly offer: ControlPlaneOffer
  /** Undefined when the host has none of its id. */
  readonly plane: ControlPlaneState | undefined
  readonly snapshots: readonly ControlPlaneSnapshot[]
  /** Empty while its API does not answer. */
  readonly nodes: readonly ControlPlaneNode[]
}

export interface Observed {
  /** Undefined when the namespace is no account's. */
  readonly accountId: string | undefined
  readonly claim: ClusterClaim | undefined
  /** Its network is there, with ranges. */
  readonly hasNetwork: boolean
  /** As the database has them, newest first. */
  readonly snapshots: readonly ClusterSnapshot[]
  /** Why nothing is known of its control plane, for people, when nothing is. */
  readonly host: HostView | { readonly obstacle: string }
  /** Its node pools, also those that are on their way out. */
  readonly pools: readonly KubeObject<NodePoolSpec, NodePoolStatus>[]
  /** Edits that start no operation. */
  readonly edits: readonly KubernetesRequest[]
  /** Who made the edit that no operation stands for, as an actor. */
  readonly editor: string
}

/** The effects of clusters by name, each with its input. */
export type ClusterEffects = AuditEffects & {
  readonly claim: ClusterId
  /** Has the host bring its control plane to what the claim says. */
  readonly ensure: ClusterId
  readonly setRelease: ClusterId & { readonly release: string }
  readonly snapshot: ClusterId & { readonly snapshotId: string }
  readonly record: ClusterId & { readonly snapshot: ClusterSnapshot }
  /** Removes it from the host, then what is known of it. */
  readonly forget: ClusterId & { readonly snapshotId: string }
  readonly restore: ClusterId & { readonly restoreId: string; readonly snapshotId: string }
  /** Has pools run a newer version, each by an operation of its own. */
  readonly raisePools: { readonly version: string; readonly names: readonly string[] }
  /** Has the host end its control plane. */
  readonly dismantle: ClusterId
  /** Gives back all that it has claimed. */
  readonly release: ClusterId
}
export type ClusterEffect = ActionWith<ClusterEffects>

/** What was asked for a cluster in PostgreSQL and of its host, and whether it was granted. */
export const CLAIMED = 'Claimed'
export const HOSTED = 'Hosted'

export type Input = MadeInput<ClusterObject, Observed>
export type OperationInput = During<Input>
export type Decision = SyncDecision<KubernetesClusterStatus, ClusterEffect>

export const idOf = ({ root, observed }: Input): ClusterId => ({
  accountId: observed.accountId ?? '',
  clusterId: root.metadata.name,
})
