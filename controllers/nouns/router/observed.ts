/** What the router controller observes before it decides, and its actions. */
import type { RouterClaim, RouterId } from '../../../db/router/index.ts'
import type { KubeObject } from '../../../kit/kube/object.ts'
import type { RouterSpec, RouterStatus } from '../../../resources/router/index.ts'
import type { AuditEffects } from '../../kit/audit.ts'
import type { ActionWith } from '../../kit/effects.ts'
import type { ClaimEffects, Edits } from '../../kit/changes.ts'
import type { RouterFacts } from '../../network/ovn/router.ts'

export type RouterObject = KubeObject<RouterSpec, RouterStatus>

export interface Observed extends Edits {
  /** Undefined when the namespace is no account's. */
  readonly accountId: string | undefined
  readonly claim: RouterClaim | undefined
  /** Its zone has private networks now. */
  readonly hasNetworks: boolean
  readonly region: string | undefined
  /** Networks of its spec that do not exist, or are not ready yet. */
  readonly missing: readonly string[]
  /** The desired facts for OVN; undefined while nothing is claimed. */
  readonly facts: RouterFacts | undefined
  readonly isApplied: boolean
  /** The newest sequence that its gateways have installed; undefined when it is not known. */
  readonly installed: number | undefined
}

/** The effects of routers by name, each with its input. */
export interface RouterEffects extends AuditEffects, ClaimEffects {
  /** Writes its rows in OVN, and those of its networks. */
  readonly apply: { readonly facts: RouterFacts }
  /** Releases the networks and the address that it gives up. */
  readonly trim: RouterId
  /** Deletes its rows in OVN, then releases its claims. */
  readonly release: { readonly zone: string; readonly id: RouterId | undefined }
}
export type RouterEffect = ActionWith<RouterEffects>
