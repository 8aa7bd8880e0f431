/** What the network controller knows of the world when it decides, and what it may decide. */
import type { NetworkClaim, NetworkId } from '../../../db/network/index.ts'
import type { KubeObject } from '../../../kit/kube/object.ts'
import type { NetworkSpec, NetworkStatus } from '../../../resources/network/index.ts'
import type { AuditEffects } from '../../kit/audit.ts'
import type { ActionWith } from '../../kit/effects.ts'
import type { ClaimEffects, Edits } from '../../kit/changes.ts'
import type { NetworkFacts } from '../../network/ovn/private-network.ts'

export type NetworkObject = KubeObject<NetworkSpec, NetworkStatus>

export interface Observed extends Edits {
  /** Undefined when the namespace is no account's. */
  readonly accountId: string | undefined
  readonly claim: NetworkClaim | undefined
  /** Its zone has private networks now. */
  readonly hasNetworks: boolean
  readonly region: string | undefined
  /** Of what OVN shall have; undefined while nothing is claimed. */
  readonly facts: NetworkFacts | undefined
  readonly isApplied: boolean
  /** The newest sequence that the hosts of its ports have installed; undefined when nobody knows. */
  readonly installed: number | undefined
}

/** The effects of networks by name, each with its input. */
export interface NetworkEffects extends AuditEffects, ClaimEffects {
  /** Its rows in OVN become so. */
  readonly apply: { readonly facts: NetworkFacts }
  /** Takes its rows out of OVN, then gives back what it has claimed. */
  readonly release: { readonly zone: string; readonly id: NetworkId | undefined }
}
export type NetworkEffect = ActionWith<NetworkEffects>
