/** What the server reconciler knows of the world when it decides. */
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

/** The volumes of one disk; undefined where the node has none of it, or none that is known here yet. */
export interface DiskVolumes {
  readonly volume: string
  readonly own: VolumeObject | undefined
  readonly target: VolumeObject | undefined
}

/** A static route of the router at a network. */
export interface NetworkRoute extends Pick<StaticRoute, 'destination' | 'nextHop'> {
  readonly networkId: string
}

export interface Observed {
  /** Undefined when the namespace is no account's. */
  readonly accountId: string | undefined
  readonly plan: PlanSpec | undefined
  readonly zone: ZoneSpec | undefined
  /** The template or the custom image is there for the zone. */
  readonly isSystemKnown: boolean
  /** Who has the SSH keys in the system that it boots; undefined when what that came from is gone. */
  readonly sshUser?: { readonly name: string | undefined } | undefined
  /** It names a group that is not there, or not yet. */
  readonly isGroupMissing: boolean
  readonly claims: ServerClaims | undefined
  /** Networks of the spec, while nothing is claimed: those that are there, and names of those that are not yet. */
  readonly networks?: { readonly known: readonly InterfaceDemand[]; readonly missing: readonly string[] }
  readonly storage: StorageObject | undefined
  /** What server.rebuild makes in its place, and what was there before. */
  readonly newStorage?: StorageObject | undefined
  readonly oldStorage?: StorageObject | undefined
  /** Other boot storages of a server that is deleted: of a rebuild that did not end. */
  readonly spareStorages?: readonly StorageObject[]
  /** What the guest of a managed machine says, while its boot storage is on trial; undefined before it has. */
  readonly machine?: ManagedMachineStatus | undefined
  /** Secrets with user data that a rebuilt server does not read any more. */
  readonly obsoleteSecrets?: readonly Key[]
  /** On the node that holds the server (claims.placement); any there is while it has claims nowhere. */
  readonly instance: InstanceObject | undefined
  /** On the node that the server is on its way to (claims.target). */
  readonly targetInstance?: InstanceObject | undefined
  /** On nodes that the server has nothing to do with any more. */
  readonly strayInstances?: readonly InstanceObject[]
  /** The boot disk on the node that the server is on its way to. */
  readonly targetVolume?: VolumeObject | undefined
  /** The other disks on the node that holds it and on the one that it is on its way to, by slot. */
  readonly dataDisks?: readonly DiskVolumes[]
  readonly isHostReachable: boolean
  /** What the host of the server offers, by its report; undefined before the first. */
  readonly hostFeatures?: readonly string[] | undefined
  /** Of the nodes that have something of the server: those that do not answer, and those of which it was proven that
   *  nothing runs there. */
  readonly unreachableNodes?: readonly string[]
  readonly fencedNodes?: readonly string[]
  /** The payload of the Secret that spec.userDataSecretName names; undefined when there is none. */
  readonly userData: Readonly<Record<string, string>> | undefined
  /** Why its guest cannot have it, half a sentence; undefined when it can. */
  readonly userDataFault?: string
  /** The copy on the node is there. */
  readonly hasUserDataCopy: boolean
  /** Static routes of the routers of its networks. */
  readonly routes?: readonly NetworkRoute[]
  /** As what this process has programmed the server in its zone's network; undefined when it has not yet. */
  readonly programmedAs?: string | undefined
  /** Who made the edit that no operation stands for, as an actor. */
  readonly editor: string
  /** What people asked the Kubernetes API for since the last reconcile, as far as admission saw it. */
  readonly requests: readonly KubernetesRequest[]
}

/** Whether every disk lies on shared storage, where another node reaches it. */
export const areOnPools = ({ storage, dataDisks = [] }: Pick<Observed, 'storage' | 'dataDisks'>): boolean =>
  storage?.status?.pool !== undefined && dataDisks.every(({ own }) => own?.spec.pool !== undefined)

/** Whose claims they are. A server without an account has none: effects on them are decided for others only. */
export function serverIdOf({ metadata: { name } }: ServerObject, { accountId }: Observed): ServerId {
  if (accountId === undefined) throw new Error(`server ${name} belongs to no account`)
  return { accountId, serverId: name }
}

const REMOVALS: readonly (string | undefined)[] = ['server.delete', 'server.force_release']
/** It was asked to go, and never comes back. */
export const isDeleting = (server: ServerObject): boolean => REMOVALS.includes(server.spec.operation?.kind)
