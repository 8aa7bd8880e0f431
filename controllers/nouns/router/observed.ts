/** What the router controller knows of the world when it decides, and what it may decide. */
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
  /** Networks of its spec that are not there, or not made yet. */
  readonly missing: readonly string[]
  /** Of what OVN shall have; undefined while nothing is claimed. */
  readonly facts: RouterFacts | undefined
  readonly isApplied: boolean
  /** The newest sequence that its gateways have installed; undefined when nobody knows. */
  readonly installed: number | undefined
}

/** The effects of routers by name, each with its input. */
export interface RouterEffects extends AuditEffects, ClaimEffects {
  /** Its rows in OVN become so, and those of its networks. */
  readonly apply: { readonly facts: RouterFacts }
  /** Gives back what it was told to give up. */
  readonly trim: RouterId
  /** Takes its rows out of OVN, then gives back what it has claimed. */
  readonly release: { readonly zone: string; readonly id: RouterId | undefined }
}
export type RouterEffect = ActionWith<RouterEffects>
