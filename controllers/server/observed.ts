/** What the server reconciler knows of the world when it decides. */
import type { KubernetesRequest } from '../../db/request/index.ts'
import type { ServerClaims, ServerId } from '../../db/server/index.ts'
import type { Key, KubeObject } from '../../kit/kube/object.ts'
import type { InstanceSpec, InstanceStatus, VolumeSpec, VolumeStatus } from '../../resources/instance/index.ts'
import type { PlanSpec, ZoneSpec } from '../../resources/catalog/index.ts'
import type { ServerSpec, ServerStatus } from '../../resources/server/index.ts'
import type { StorageSpec, StorageStatus } from '../../resources/storage/index.ts'

export type ServerObject = KubeObject<ServerSpec, ServerStatus>
export type InstanceObject = KubeObject<InstanceSpec, InstanceStatus>
export type VolumeObject = KubeObject<VolumeSpec, VolumeStatus>
export type StorageObject = KubeObject<StorageSpec, StorageStatus>

export interface Observed {
  /** Undefined when the namespace is no account's. */
  readonly accountId: string | undefined
  readonly plan: PlanSpec | undefined
  readonly zone: ZoneSpec | undefined
  readonly isTemplateKnown: boolean
  /** It names a group that is not there, or not yet. */
  readonly isGroupMissing: boolean
  readonly claims: ServerClaims | undefined
  readonly storage: StorageObject | undefined
  /** What server.rebuild makes in its place, and what was there before. */
  readonly newStorage?: StorageObject | undefined
  readonly oldStorage?: StorageObject | undefined
  /** Secrets with user data that a rebuilt server does not read any more. */
  readonly obsoleteSecrets?: readonly Key[]
  /** On the node that holds the server (claims.placement); any there is while it has claims nowhere. */
  readonly instance: InstanceObject | undefined
  /** On the node that the server is on its way to (claims.target). */
  readonly targetInstance?: InstanceObject | undefined
  /** On nodes that the server has nothing to do with any more. */
  readonly strayInstances?: readonly InstanceObject[]
  /** The disk on the node that the server is on its way to. */
  readonly targetVolume?: VolumeObject | undefined
  readonly isHostReachable: boolean
  /** What the host of the server offers, by its report; undefined before the first. */
  readonly hostFeatures?: readonly string[] | undefined
  /** Of the nodes that have something of the server: those that do not answer, and those of which it was proven that
   *  nothing runs there. */
  readonly unreachableNodes?: readonly string[]
  readonly fencedNodes?: readonly string[]
  /** The payload of the Secret that spec.userDataSecretName names; undefined when there is none. */
  readonly userData: Readonly<Record<string, string>> | undefined
  /** The copy on the node is there. */
  readonly hasUserDataCopy: boolean
  /** Who made the edit that no operation stands for, as an actor. */
  readonly editor: string
  /** What people asked the Kubernetes API for since the last reconcile, as far as admission saw it. */
  readonly requests: readonly KubernetesRequest[]
}

/** Whose claims they are. A server without an account has none: effects on them are decided for others only. */
export function serverIdOf({ metadata: { name } }: ServerObject, { accountId }: Observed): ServerId {
  if (accountId === undefined) throw new Error(`server ${name} belongs to no account`)
  return { accountId, serverId: name }
}

const REMOVALS: readonly (string | undefined)[] = ['server.delete', 'server.force_release']
/** It was asked to go, and never comes back. */
export const isDeleting = (server: ServerObject): boolean => REMOVALS.includes(server.spec.operation?.kind)
