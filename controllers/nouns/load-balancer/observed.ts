/** What the load balancer controller knows of the world when it decides, and what it may decide. */
import type { LoadBalancerClaim, LoadBalancerId } from '../../../db/load-balancer/index.ts'
import type { KubeObject } from '../../../kit/kube/object.ts'
import type { LoadBalancerSpec, LoadBalancerStatus } from '../../../resources/load-balancer/index.ts'
import type { AuditEffects } from '../../kit/audit.ts'
import type { ActionWith } from '../../kit/effects.ts'
import type { ClaimEffects, Edits } from '../../kit/changes.ts'
import type { Machine, MachineEffects } from '../managed-machine/index.ts'

export type LoadBalancerObject = KubeObject<LoadBalancerSpec, LoadBalancerStatus>

export interface Observed extends Edits {
  /** Undefined when the namespace is no account's. */
  readonly accountId: string | undefined
  readonly claim: LoadBalancerClaim | undefined
  /** Its network is there and has its range. */
  readonly hasNetwork: boolean
  /** Of the public IPv6 address that this process has led to its machines last; undefined before. */
  readonly routeDigest: string | undefined
  /** Its machines, also those that are on their way out. */
  readonly machines: readonly Machine[]
  /** Certificates that are kept and that nothing names any more. */
  readonly unusedCertificates: readonly string[]
}

/** The effects of load balancers by name, each with its input. */
export type LoadBalancerEffects = AuditEffects &
  ClaimEffects &
  MachineEffects & {
    /** Leads the public IPv6 address to whichever machine has it. */
    readonly route: { readonly address: string }
    readonly drop: LoadBalancerId & { readonly certificateIds: readonly string[] }
    /** Gives back all that it has claimed. */
    readonly release: LoadBalancerId
  }
export type LoadBalancerEffect = ActionWith<LoadBalancerEffects>
