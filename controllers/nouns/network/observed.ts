/** What the network controller observes before it decides, and its actions. */
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
  /** The desired facts for OVN; undefined while nothing is claimed. */
  readonly facts: NetworkFacts | undefined
  readonly isApplied: boolean
  /** The newest sequence that the hosts of its ports have installed; undefined when it is not known. */
  readonly installed: number | undefined
}

/** The effects of networks by name, each with its input. */
export interface NetworkEffects extends AuditEffects, ClaimEffects {
  /** Writes its rows in OVN. */
  readonly apply: { readonly facts: NetworkFacts }
  /** Deletes its rows in OVN, then releases its claims. */
  readonly release: { readonly zone: string; readonly id: NetworkId | undefined }
}
export type NetworkEffect = ActionWith<NetworkEffects>
