/** What the controller of Kubernetes clusters observes before it decides, and its actions. */
import type { KindOf } from '../../../domain/operations.ts'
import type { ClusterClaim, ClusterId, ClusterSnapshot, ClusterToken } from '../../../db/kubernetes-cluster/index.ts'
import type { AssociatedObject } from './associated.ts'
import type { KubernetesRequest } from '../../../db/request/index.ts'
import type { AddonName } from '../../../integrations/control-planes/addons.ts'
import type {
  ControlPlaneNode,
  ControlPlaneOffer,
  ControlPlaneSnapshot,
  ControlPlaneState,
} from '../../../integrations/control-planes/control.ts'
import type { KubeObject } from '../../../kit/kube/object.ts'
import type { KubernetesClusterSpec, KubernetesClusterStatus } from '../../../resources/kubernetes-cluster/index.ts'
import type { NodePoolSpec, NodePoolStatus } from '../../../resources/node-pool/index.ts'
import type { AuditEffects } from '../../kit/audit.ts'
import type { ActionWith } from '../../kit/effects.ts'
import { type MadeInput } from '../../kit/made-plan.ts'
import type { During } from '../../kit/operation/plan.ts'
import { type SyncDecision } from '../../kit/synced.ts'

export type ClusterObject = KubeObject<KubernetesClusterSpec, KubernetesClusterStatus>

/** What the host of its control plane reports about it. */
export interface HostView {
  readonly offer: ControlPlaneOffer
  /** Undefined when the host has none with its id. */
  readonly plane: ControlPlaneState | undefined
  readonly snapshots: readonly ControlPlaneSnapshot[]
  /** Empty while its API does not answer. */
  readonly nodes: readonly ControlPlaneNode[]
}

export interface Observed {
  /** Undefined when the namespace is no account's. */
  readonly accountId: string | undefined
  readonly claim: ClusterClaim | undefined
  /** Its network exists and has ranges. */
  readonly hasNetwork: boolean
  /** From the database, newest first. */
  readonly snapshots: readonly ClusterSnapshot[]
  /** Tokens of its add-ons. */
  readonly tokens: readonly ClusterToken[]
  /** The host's report, or why there is none, for people. */
  readonly host: HostView | { readonly obstacle: string }
  /** `markOf` the place where its snapshots are also stored, empty before that is created; undefined where there is no
   *  object storage. */
  readonly place: string | undefined
  /** Its node pools, including those that are being deleted. */
  readonly pools: readonly KubeObject<NodePoolSpec, NodePoolStatus>[]
  readonly platform: {
    /** An organisation platform is configured. */
    readonly isConfigured: boolean
    /** The organisation of the account. */
    readonly organisationId: string | undefined
  }
  /** Objects that its programs created in its account, and that would be deleted with it. */
  readonly associated: readonly AssociatedObject[]
  /** Edits that start no operation. */
  readonly edits: readonly KubernetesRequest[]
  /** The actor of the edit that has no operation. */
  readonly editor: string
}

/** The effects of clusters by name, each with its input. */
export type ClusterEffects = AuditEffects & {
  readonly claim: ClusterId
  /** Makes the host bring its control plane to the state that the claim describes. */
  readonly ensure: ClusterId
  readonly setRelease: ClusterId & { readonly release: string }
  readonly snapshot: ClusterId & { readonly snapshotId: string }
  readonly record: ClusterId & { readonly snapshot: ClusterSnapshot }
  /** Configures the host with the place where snapshots are also stored. */
  readonly place: ClusterId
  /** Removes the snapshot from the host, then its record. */
  readonly forget: ClusterId & { readonly snapshotId: string }
  readonly restore: ClusterId & { readonly restoreId: string; readonly snapshotId: string }
  /** Gives an add-on a new token; its current token is valid until then. */
  readonly grant: ClusterId & { readonly addon: AddonName; readonly tokenId: string | null }
  /** Makes its host, which has lost it, create it again from that snapshot in object storage. */
  readonly recover: ClusterId & { readonly restoreId: string; readonly snapshotId: string }
  /** Removes nodes of deleted pools from it. */
  readonly forgetNodes: ClusterId & { readonly names: readonly string[] }
  /** Upgrades pools to a newer version, each by its own operation. */
  readonly raisePools: { readonly version: string; readonly names: readonly string[] }
  /** Registers it with the organisation platform, for an operation or, in a retry, without one. */
  readonly register: ClusterId & { readonly operationId: string | undefined }
  /** Deregisters it from the organisation platform. */
  readonly deregister: ClusterId & {
    readonly operationId: string | undefined
    readonly state: 'deregistered' | 'unlinked'
  }
  /** Makes the host delete its control plane. */
  readonly dismantle: ClusterId
  /** Releases all that it has claimed. */
  readonly release: ClusterId
}
export type ClusterEffect = ActionWith<ClusterEffects>

/** Whether PostgreSQL granted the claims of the cluster, and whether its host accepted it. */
export const CLAIMED = 'Claimed'
export const HOSTED = 'Hosted'
/** Whether its host knows where its snapshots are stored in object storage. */
export const SNAPSHOTS_PLACED = 'SnapshotsPlaced'

export type Input = MadeInput<ClusterObject, Observed>
export type OperationInput = During<Input>
export type Decision = SyncDecision<KubernetesClusterStatus, ClusterEffect, KindOf<'kubernetes_cluster'>>

export const idOf = ({ root, observed }: Input): ClusterId => ({
  accountId: observed.accountId ?? '',
  clusterId: root.metadata.name,
})
