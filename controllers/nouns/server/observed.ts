/** What the server reconciler observes before it decides. */
import type { StaticRoute } from '../../../domain/network/rules.ts'
import type { KubernetesRequest } from '../../../db/request/index.ts'
import type { InterfaceDemand } from '../../../db/network-interface/index.ts'
import type { ServerClaims, ServerId } from '../../../db/server/index.ts'
import type { Key, KubeObject } from '../../../kit/kube/object.ts'
import type { InstanceSpec, InstanceStatus, VolumeSpec, VolumeStatus } from '../../../resources/instance/index.ts'
import type { ManagedMachineStatus } from '../../../resources/managed-machine/index.ts'
import type { PlanSpec, ZoneSpec } from '../../../resources/catalog/index.ts'
import type { ServerSpec, ServerStatus } from '../../../resources/server/index.ts'
import type { StorageSpec, StorageStatus } from '../../../resources/storage/index.ts'

export type ServerObject = KubeObject<ServerSpec, ServerStatus>
export type InstanceObject = KubeObject<InstanceSpec, InstanceStatus>
export type VolumeObject = KubeObject<VolumeSpec, VolumeStatus>
export type StorageObject = KubeObject<StorageSpec, StorageStatus>

/** The volumes of one disk; undefined where the node has none, or this cache does not know it yet. */
export interface DiskVolumes {
  readonly volume: string
  readonly own: VolumeObject | undefined
  readonly target: VolumeObject | undefined
}

/** A static route of the router of a network. */
export interface NetworkRoute extends Pick<StaticRoute, 'destination' | 'nextHop'> {
  readonly networkId: string
}

export interface Observed {
  /** Undefined when the namespace is no account's. */
  readonly accountId: string | undefined
  readonly plan: PlanSpec | undefined
  readonly zone: ZoneSpec | undefined
  /** The template or the custom image exists for the zone. */
  readonly isSystemKnown: boolean
  /** The user with the SSH keys in the system that it boots; undefined when the source of that system no longer
   *  exists. */
  readonly sshUser?: { readonly name: string | undefined } | undefined
  /** The group of its spec does not exist, or not yet. */
  readonly isGroupMissing: boolean
  readonly claims: ServerClaims | undefined
  /** Networks of the spec, while nothing is claimed: those that exist, and the names of those that do not exist yet. */
  readonly networks?: { readonly known: readonly InterfaceDemand[]; readonly missing: readonly string[] }
  readonly storage: StorageObject | undefined
  /** The new boot storage of server.rebuild, and the old one. */
  readonly newStorage?: StorageObject | undefined
  readonly oldStorage?: StorageObject | undefined
  /** Other boot storages of a server that is being deleted, from a rebuild that did not end. */
  readonly spareStorages?: readonly StorageObject[]
  /** What the guest of a managed machine reports while its boot storage is on trial; undefined before the first
   *  report. */
  readonly machine?: ManagedMachineStatus | undefined
  /** Secrets with user data that a rebuilt server no longer reads. */
  readonly obsoleteSecrets?: readonly Key[]
  /** The instance on the server's node (claims.placement); any existing one while it has no claims. */
  readonly instance: InstanceObject | undefined
  /** The instance on the node that the server moves to (claims.target). */
  readonly targetInstance?: InstanceObject | undefined
  /** Instances on nodes that are no longer nodes of the server. */
  readonly strayInstances?: readonly InstanceObject[]
  /** The boot disk on the node that the server moves to. */
  readonly targetVolume?: VolumeObject | undefined
  /** The other disks on its node and on the one that it moves to, by slot. */
  readonly dataDisks?: readonly DiskVolumes[]
  readonly isHostReachable: boolean
  /** What the host of the server offers, from its report; undefined before the first. */
  readonly hostFeatures?: readonly string[] | undefined
  /** Among the nodes that have something of the server: those that do not answer, and those on which it was proven that
   *  nothing runs. */
  readonly unreachableNodes?: readonly string[]
  readonly fencedNodes?: readonly string[]
  /** The payload of the Secret that spec.userDataSecretName names; undefined when there is none. */
  readonly userData: Readonly<Record<string, string>> | undefined
  /** Why its guest cannot have the user data, half a sentence; undefined when it can. */
  readonly userDataFault?: string
  /** The copy of the user data on the node exists. */
  readonly hasUserDataCopy: boolean
  /** Static routes of the routers of its networks. */
  readonly routes?: readonly NetworkRoute[]
  /** The fingerprint with which this process has programmed the server in its zone's network; undefined when it has not
   *  yet. */
  readonly programmedAs?: string | undefined
  /** The actor of the edit that has no operation. */
  readonly editor: string
  /** Requests by people to the Kubernetes API since the last reconcile, as far as admission recorded them. */
  readonly requests: readonly KubernetesRequest[]
}

/** Whether every disk is on shared storage, where another node reaches it. */
export const areOnPools = ({ storage, dataDisks = [] }: Pick<Observed, 'storage' | 'dataDisks'>): boolean =>
  storage?.status?.pool !== undefined && dataDisks.every(({ own }) => own?.spec.pool !== undefined)

/** The owner of the claims. A server without an account has none: effects on claims are decided only for servers with
 *  one. */
export function serverIdOf({ metadata: { name } }: ServerObject, { accountId }: Observed): ServerId {
  if (accountId === undefined) throw new Error(`server ${name} belongs to no account`)
  return { accountId, serverId: name }
}

const REMOVALS: readonly (string | undefined)[] = ['server.delete', 'server.force_release']
/** Its deletion was requested, which is final. */
export const isDeleting = (server: ServerObject): boolean => REMOVALS.includes(server.spec.operation?.kind)
