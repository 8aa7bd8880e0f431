/** What the node reconciler observes before it decides. */
import type { SpreadGroup } from '../../../domain/node/evacuation.ts'
import type { Candidate, Room } from '../../../domain/node/placement.ts'
import type { KubeObject } from '../../../kit/kube/object.ts'
import type {
  NodeReportSpec,
  NodeReportStatus,
  ObservationSpec,
  ObservationStatus,
} from '../../../resources/instance/index.ts'
import type { NodeSpec, NodeStatus } from '../../../resources/node/index.ts'
import type { ServerSpec, ServerStatus } from '../../../resources/server/index.ts'
import type { StorageSpec, StorageStatus } from '../../../resources/storage/index.ts'
import type { During } from '../../kit/operation/plan.ts'
import { activeOperation } from '../../kit/operation/stanza.ts'

export type NodeObject = KubeObject<NodeSpec, NodeStatus>
export type ObservationObject = KubeObject<ObservationSpec, ObservationStatus>

export interface Observed {
  readonly hasNamespace: boolean
  readonly hasAccess: boolean
  readonly report: NodeReportSpec | undefined
  readonly heartbeat: Heartbeat | undefined
  /** What its agent reported that the host holds; undefined before the first report. */
  readonly held?: HeldReport | undefined
  /** The node in PostgreSQL; undefined when it is not there. */
  readonly mirror: Candidate | undefined
  /** The room that guests use on the node without having claims there. */
  readonly forgotten: Room
  /** The account that the node was given to, until its object says so and PostgreSQL has recorded that. */
  readonly dedication?: string | undefined
  /** Nodes that can be asked whether they reach this one; read only while it is silent. */
  readonly observers: readonly string[]
  /** The observations that were requested from them, with their answers. */
  readonly observations: readonly ObservationObject[]
  /** Deleted objects in a fenced node's namespace that wait for its agent. */
  readonly blockedDeletions: readonly BlockedDeletion[]
  /** The actor of the edit that has no operation. */
  readonly editor: string
  /** Servers with room on the node, by account and id; read only while the node is at work (`isAtWork`). */
  readonly guests: readonly TenantServer[]
  /** How many Instances its agent has, including those whose server no longer has room on the node. */
  readonly instanceCount: number
  /** Storages without a server whose data is on the node, or moving there; read only while the node is at work. */
  readonly storages: readonly TenantStorage[]
  /** How many Volumes its agent has. */
  readonly volumeCount: number
  /** The nodes of the zone from the view of placement; read only while the node is at work. */
  readonly zoneNodes: readonly Candidate[]
}

export interface Heartbeat {
  /** As written by the agent; only shown to people. */
  readonly renewedAt: string | undefined
  /** Seconds without a renewal, on this process's own clock. */
  readonly ageSeconds: number
}

export interface HeldReport {
  readonly counts: NonNullable<NodeReportStatus['held']>
  /** Seconds since the last new report, on this process's own clock; infinite before the second report that it
   *  received. */
  readonly ageSeconds: number
}

/** An Instance, or a Volume whose data is on the node or is retained. */
export interface BlockedDeletion {
  readonly kind: 'Instance' | 'Volume'
  readonly name: string
}

/** A server that has room on the node, or moves here. */
export interface TenantServer {
  readonly accountId: string
  readonly namespace: string
  readonly serverId: string
  readonly room: Room
  readonly cpuPool: string | undefined
  /** Its spread group; undefined when no other server is in it. */
  readonly group: SpreadGroup | undefined
  /** Undefined while it is only claimed, or no longer exists. */
  readonly server: KubeObject<ServerSpec, ServerStatus> | undefined
  /** The room is reserved for it, while it is on another node. */
  readonly isArriving: boolean
  /** Its disk is on storage that other nodes reach too. */
  readonly isOnPool: boolean
}

/** A storage without a server. */
export interface TenantStorage {
  readonly namespace: string
  readonly storageId: string
  readonly sizeGibibytes: number
  /** Undefined while it is only claimed, or gone. */
  readonly storage: KubeObject<StorageSpec, StorageStatus> | undefined
  /** The room is reserved for it, while its data is on another node. */
  readonly isArriving: boolean
}

/** The input of every rule. */
export interface ReconcileInput {
  readonly node: NodeObject
  readonly observed: Observed
  readonly now: Date
}

/** The input while an operation is under way. */
export type OperationInput = During<ReconcileInput>

/** Servers may be placed on it; other nodes are for storage or networks only, and placement never has them. */
export const isCompute = ({ spec }: NodeObject): boolean => spec.roles.includes('compute')

/** Whether the servers of the node may matter to its plan. */
export const needsServers = (node: NodeObject): boolean =>
  activeOperation(node) !== undefined ||
  node.status?.fence !== undefined ||
  node.spec.isInMaintenance === true ||
  node.metadata.deletionTimestamp !== undefined
