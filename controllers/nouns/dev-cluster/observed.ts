/** What the controller of dev clusters observes before it decides, and its actions. */
import type { DevClusterId } from '../../../db/dev-cluster/index.ts'
import type { PublicKey } from '../../../db/kubernetes-cluster/index.ts'
import type { KubernetesRequest } from '../../../db/request/index.ts'
import type { KubeObject } from '../../../kit/kube/object.ts'
import type { DevClusterSpec, DevClusterStatus } from '../../../resources/dev-cluster/index.ts'
import type { AuditEffects } from '../../kit/audit.ts'
import type { ActionWith } from '../../kit/effects.ts'
import type { ClaimEffects } from '../../kit/changes.ts'
import type { Machine, MachineEffects } from '../managed-machine/index.ts'

export type DevClusterObject = KubeObject<DevClusterSpec, DevClusterStatus>

export interface Observed {
  /** Undefined when the namespace is no account's. */
  readonly accountId: string | undefined
  readonly isClaimed: boolean
  readonly region: string
  /** Range of its private network; undefined while that has none, and for a cluster without one. */
  readonly networkCidr: string | undefined
  /** Public key of the issuer of its tokens; undefined where nothing can be sealed. */
  readonly issuerKey: PublicKey | undefined
  /** Its server, including one that is being deleted. */
  readonly machines: readonly Machine[]
  /** Names of Servers that are missing without an order: claims or guests of them are left. */
  readonly lost: readonly string[]
  /** Its server does not exist, and its deletion was ordered. */
  readonly isServerRemoved: boolean
  /** Its service accounts, by uid, whose holders lost them. */
  readonly endedAdmins: readonly string[]
  /** Requests by people to the Kubernetes API since the last reconcile. */
  readonly requests: readonly KubernetesRequest[]
}

/** The effects of dev clusters by name, each with its input. */
export type DevClusterEffects = AuditEffects &
  ClaimEffects &
  MachineEffects & {
    /** Releases all that it has claimed. */
    readonly release: DevClusterId
  }
export type DevClusterAction = ActionWith<DevClusterEffects>

/** Whether PostgreSQL granted the claims of the cluster. */
export const CLAIMED = 'Claimed'
