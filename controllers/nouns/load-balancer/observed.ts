/** What the load balancer controller observes before it decides, and its actions. */
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
  /** Its network exists and has its range. */
  readonly hasNetwork: boolean
  /** Digest of the route to the public IPv6 address that this process last wrote; undefined before. */
  readonly routeDigest: string | undefined
  /** Its machines, including those that are being deleted. */
  readonly machines: readonly Machine[]
  /** Names of Servers that are missing without an order: claims or guests of them are left. */
  readonly lost: readonly string[]
  /** Stored certificates that no spec names any longer. */
  readonly unusedCertificates: readonly string[]
}

/** The effects of load balancers by name, each with its input. */
export type LoadBalancerEffects = AuditEffects &
  ClaimEffects &
  MachineEffects & {
    /** Routes the public IPv6 address to the machine that has it. */
    readonly route: { readonly address: string }
    readonly drop: LoadBalancerId & { readonly certificateIds: readonly string[] }
    /** Releases all that it has claimed. */
    readonly release: LoadBalancerId
  }
export type LoadBalancerEffect = ActionWith<LoadBalancerEffects>
