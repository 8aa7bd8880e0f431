/** What the node reconciler knows of the world when it decides. */
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
  /** What its agent has said that the host holds; undefined before that was heard. */
  readonly held?: HeldReport | undefined
  /** The node as PostgreSQL has it; undefined when it has not. */
  readonly mirror: Candidate | undefined
  /** What guests take on it by now that have no claims there. */
  readonly forgotten: Room
  /** The account that it was given to, until its object says so and PostgreSQL has heard of that. */
  readonly dedication?: string | undefined
  /** Nodes that can be asked whether they hear this one; read only while it is silent. */
  readonly observers: readonly string[]
  /** What they were asked, and what they said. */
  readonly observations: readonly ObservationObject[]
  /** What is on its way out of a fenced node's namespace and waits for its agent. */
  readonly blockedDeletions: readonly BlockedDeletion[]
  /** Who made the edit that no operation stands for, as an actor. */
  readonly editor: string
  /** Who has room on the node, by account and id; read only while the node is at work (`isAtWork`). */
  readonly guests: readonly TenantServer[]
  /** How many guests its agent is told of, also those that have no room on it any more. */
  readonly instanceCount: number
  /** The storages without a server whose data lie on the node, or are on their way there; read only while the node is
   *  at work. */
  readonly storages: readonly TenantStorage[]
  /** Disks that its agent is told of. */
  readonly volumeCount: number
  /** The nodes of the zone as placement sees them; read only while the node is at work. */
  readonly zoneNodes: readonly Candidate[]
}

export interface Heartbeat {
  /** As the agent wrote it; shown to people only. */
  readonly renewedAt: string | undefined
  /** How long no renewal was seen, on this process's own clock. */
  readonly ageSeconds: number
}

export interface HeldReport {
  readonly counts: NonNullable<NodeReportStatus['held']>
  /** Since a new report was seen, on this process's own clock; infinite before the second one that it saw. */
  readonly ageSeconds: number
}

/** An Instance, or a Volume whose data is on the node or stays. */
export interface BlockedDeletion {
  readonly kind: 'Instance' | 'Volume'
  readonly name: string
}

/** A server that has room on the node, or is on its way here. */
export interface TenantServer {
  readonly accountId: string
  readonly namespace: string
  readonly serverId: string
  readonly room: Room
  readonly cpuPool: string | undefined
  /** Where it lives; undefined when no other server is in its group. */
  readonly group: SpreadGroup | undefined
  /** Undefined while it is only claimed, or gone. */
  readonly server: KubeObject<ServerSpec, ServerStatus> | undefined
  /** Held for it, while it lives on another node. */
  readonly isArriving: boolean
  /** Its disk is on storage that other nodes reach too. */
  readonly isOnPool: boolean
}

/** A storage that no server has. */
export interface TenantStorage {
  readonly namespace: string
  readonly storageId: string
  readonly sizeGibibytes: number
  /** Undefined while it is only claimed, or gone. */
  readonly storage: KubeObject<StorageSpec, StorageStatus> | undefined
  /** Held for it, while its data lie on another node. */
  readonly isArriving: boolean
}

/** What every rule looks at. */
export interface ReconcileInput {
  readonly node: NodeObject
  readonly observed: Observed
  readonly now: Date
}

/** While an operation is under way. */
export type OperationInput = During<ReconcileInput>

/** Servers may be placed on it; other nodes are for storage or networks only, and placement never learns of them. */
export const isCompute = ({ spec }: NodeObject): boolean => spec.roles.includes('compute')

/** Whether what happens to the servers of the node may concern it. */
export const needsServers = (node: NodeObject): boolean =>
  activeOperation(node) !== undefined ||
  node.status?.fence !== undefined ||
  node.spec.isInMaintenance === true ||
  node.metadata.deletionTimestamp !== undefined
