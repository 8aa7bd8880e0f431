/** Inputs and decisions of the plan of zones. */
import type { Evacuee } from '../../../domain/node/evacuation.ts'
import type { Host } from '../../../domain/zone/high-availability.ts'
import type { Candidate } from '../../../domain/node/placement.ts'
import type { KubeObject } from '../../../kit/kube/object.ts'
import type { PlanSpec, StoragePolicy, ZoneSpec, ZoneStatus } from '../../../resources/catalog/index.ts'
import type { ServerSpec, ServerStatus } from '../../../resources/server/index.ts'
import type { StorageSpec, StorageStatus } from '../../../resources/storage/index.ts'
import type { AuditEffects } from '../../kit/audit.ts'
import type { ActionWith } from '../../kit/effects.ts'
import type { OperationDecision } from '../../kit/operation/decision.ts'
import type { PlatformOperation } from '../../kit/platform-operation.ts'

export type ZoneObject = KubeObject<ZoneSpec, ZoneStatus>
export type StorageObject = KubeObject<StorageSpec, StorageStatus>

/** What moves to shared storage together: a server with its storages, or a storage without a server. */
export interface MisplacedData extends Omit<Evacuee, 'serverId'> {
  readonly node: string
  /** An operation of the node is under way, such as a drain. */
  readonly isNodeBusy: boolean
  readonly namespace: string
  readonly serverId?: string
  /** Undefined while the cache does not know it. */
  readonly server?: KubeObject<ServerSpec, ServerStatus> | undefined
  /** The storages on the disks of the node, by name; never empty. */
  readonly storages: readonly StorageObject[]
}

export interface Observed {
  readonly nodes: readonly Candidate[]
  readonly plans: readonly KubeObject<PlanSpec>[]
  readonly hosts: readonly Host[]
  /** Guests of the fullest node. */
  readonly guests: readonly Evacuee[]
  /** Its hosts have private networks, and the platform reaches OVN; undefined while no host answers. */
  readonly hasPrivateNetworks?: boolean | undefined
  /** Why they have none. */
  readonly networkObstacle?: string | undefined
  /** One of the hosts has a place for backups. */
  readonly hasBackups: boolean
  /** The families of public addresses that pools of the zone assign to servers. */
  readonly publicFamilies?: readonly ('ipv4' | 'ipv6')[]
  /** Zones whose backups one of the hosts can copy. */
  readonly backupSources?: readonly string[]
  /** The backend for S3 clients, or why there is none. */
  readonly objectStorage?: Pick<ZoneStatus, 'objectStorageBackend' | 'objectStorageObstacle'>
  /** The available releases of Kubernetes, or why there are none. */
  readonly kubernetes?: Pick<
    ZoneStatus,
    'kubernetesReleases' | 'kubernetesObstacle' | 'hasPlaygrounds' | 'playgroundsObstacle'
  >
  /** Every reachable host has their image. */
  readonly builtTemplates: readonly string[]
  /** Shared storage that hosts of the zone reach. */
  readonly pools?: readonly string[]
  /** Storages of tier standard on the disks of hosts that reach shared storage, without those that snapshots and copies
   *  keep there; read only while more of them may be moved. */
  readonly misplaced?: readonly MisplacedData[]
  /** How many storages the zone is moving to shared storage. */
  readonly gathered?: number
  /** The actor of the edit that has no operation. */
  readonly editor?: string
}

export interface ReconcileInput {
  readonly zone: ZoneObject
  readonly observed: Observed
  readonly now: Date
}

export type SharedStorage = NonNullable<ZoneSpec['sharedStorage']>

export interface SharedStoragePools {
  readonly access: Pick<SharedStorage, 'protocol' | 'secretName'>
  /** Pools of the zone, by the names that its nodes use. */
  readonly pools: readonly string[]
}

/** Both answer `status.sharedStorage`. */
export interface SharedStorageEffects {
  readonly readSharedStorage: SharedStoragePools
  readonly setStoragePolicy: SharedStoragePools & { readonly policy: StoragePolicy }
}

/** The effects of zones by name, each with its input. */
export interface ZoneEffects extends AuditEffects, SharedStorageEffects {
  /** Starts an operation on a storage. */
  readonly orderStorage: PlatformOperation
}
export type ZoneAction = ActionWith<ZoneEffects>

export interface Decision extends OperationDecision<ZoneAction, 'storage.rebalance_policy'> {
  /** Status fields besides those of the judgement. */
  readonly status?: Pick<ZoneStatus, 'storagePolicy'> | { readonly storagePolicy: undefined }
}
