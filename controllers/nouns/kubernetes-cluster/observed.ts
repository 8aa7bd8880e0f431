/** What the controller of Kubernetes clusters knows of the world when it decides, and what it may decide. */
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
  /** Of its add-ons. */
  readonly tokens: readonly ClusterToken[]
  /** Why nothing is known of its control plane, for people, when nothing is. */
  readonly host: HostView | { readonly obstacle: string }
  /** `markOf` where its snapshots go as well, empty before that is made; undefined where there is no object storage. */
  readonly place: string | undefined
  /** Its node pools, also those that are on their way out. */
  readonly pools: readonly KubeObject<NodePoolSpec, NodePoolStatus>[]
  readonly platform: {
    /** There is an organisation platform. */
    readonly isConfigured: boolean
    /** That the account belongs to. */
    readonly organisationId: string | undefined
  }
  /** What programs of it made in its account, and what would go with it. */
  readonly associated: readonly AssociatedObject[]
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
  /** Tells the host where its snapshots go as well. */
  readonly place: ClusterId
  /** Removes it from the host, then what is known of it. */
  readonly forget: ClusterId & { readonly snapshotId: string }
  readonly restore: ClusterId & { readonly restoreId: string; readonly snapshotId: string }
  /** Gives an add-on a new token; the one that it has lasts until then. */
  readonly grant: ClusterId & { readonly addon: AddonName; readonly tokenId: string | null }
  /** Has its host, which has lost it, make it anew of that snapshot in object storage. */
  readonly recover: ClusterId & { readonly restoreId: string; readonly snapshotId: string }
  /** Takes nodes out of it whose pools have gone. */
  readonly forgetNodes: ClusterId & { readonly names: readonly string[] }
  /** Has pools run a newer version, each by an operation of its own. */
  readonly raisePools: { readonly version: string; readonly names: readonly string[] }
  /** Tells the organisation platform of it; of an operation, or of none when it is tried again. */
  readonly register: ClusterId & { readonly operationId: string | undefined }
  /** Has the organisation platform let go of it. */
  readonly deregister: ClusterId & {
    readonly operationId: string | undefined
    readonly state: 'deregistered' | 'unlinked'
  }
  /** Has the host end its control plane. */
  readonly dismantle: ClusterId
  /** Gives back all that it has claimed. */
  readonly release: ClusterId
}
export type ClusterEffect = ActionWith<ClusterEffects>

/** What was asked for a cluster in PostgreSQL and of its host, and whether it was granted. */
export const CLAIMED = 'Claimed'
export const HOSTED = 'Hosted'
/** Whether its host knows where its snapshots go in object storage. */
export const SNAPSHOTS_PLACED = 'SnapshotsPlaced'

export type Input = MadeInput<ClusterObject, Observed>
export type OperationInput = During<Input>
export type Decision = SyncDecision<KubernetesClusterStatus, ClusterEffect, KindOf<'kubernetes_cluster'>>

export const idOf = ({ root, observed }: Input): ClusterId => ({
  accountId: observed.accountId ?? '',
  clusterId: root.metadata.name,
})
