/** What the controller of floating IPs observes before it decides, and its actions. */
import type { FloatingIpClaim, FloatingIpId } from '../../../db/floating-ip/index.ts'
import type { KubeObject } from '../../../kit/kube/object.ts'
import type { FloatingIpSpec, FloatingIpStatus } from '../../../resources/floating-ip/index.ts'
import type { AuditEffects } from '../../kit/audit.ts'
import type { ActionWith } from '../../kit/effects.ts'
import type { ClaimEffects, Edits } from '../../kit/changes.ts'
import type { FloatingIpFacts } from '../../network/ovn/floating-ip.ts'

export type FloatingIpObject = KubeObject<FloatingIpSpec, FloatingIpStatus>

export interface Observed extends Edits {
  /** Undefined when the namespace is no account's. */
  readonly accountId: string | undefined
  readonly claim: FloatingIpClaim | undefined
  /** The server that the spec names: `there` has room; `unmade` does not exist yet; `gone` no longer exists. */
  readonly server: 'there' | 'unmade' | 'gone'
  /** The desired facts for OVN; undefined when it points nowhere. */
  readonly facts: FloatingIpFacts | undefined
  readonly isApplied: boolean
  /** The newest sequence that the gateways of the zone have installed; undefined when it is not known. */
  readonly installed: number | undefined
}

/** The effects of floating IPs by name, each with its input. */
export interface FloatingIpEffects extends AuditEffects, ClaimEffects {
  /** Writes its rows in OVN. */
  readonly apply: { readonly zone: string; readonly facts: FloatingIpFacts | undefined }
  /** Deletes its rows in OVN, then releases the address. */
  readonly release: { readonly zone: string; readonly id: FloatingIpId | undefined }
}
export type FloatingIpEffect = ActionWith<FloatingIpEffects>
