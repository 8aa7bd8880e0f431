/** What the controller of floating IPs knows of the world when it decides, and what it may decide. */
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
  /** Of the server that the spec names: it has room, it is not there (yet, or any more). */
  readonly server: 'there' | 'unmade' | 'gone'
  /** Of what OVN shall have; undefined when it leads nowhere. */
  readonly facts: FloatingIpFacts | undefined
  readonly isApplied: boolean
  /** The newest sequence that the gateways of the zone have installed; undefined when nobody knows. */
  readonly installed: number | undefined
}

/** The effects of floating IPs by name, each with its input. */
export interface FloatingIpEffects extends AuditEffects, ClaimEffects {
  /** Its rows in OVN become so. */
  readonly apply: { readonly zone: string; readonly facts: FloatingIpFacts | undefined }
  /** Takes its rows out of OVN, then gives the address back. */
  readonly release: { readonly zone: string; readonly id: FloatingIpId | undefined }
}
export type FloatingIpEffect = ActionWith<FloatingIpEffects>
