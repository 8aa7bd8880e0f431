/** What the edge controller observes before it decides, and its actions. */
import type { Gateway } from '../../../domain/network/rules.ts'
import type { EdgeClaim, EdgeDemand, EdgeId } from '../../../db/edge/index.ts'
import type { KubernetesRequest } from '../../../db/request/index.ts'
import type { KubeObject } from '../../../kit/kube/object.ts'
import type { EdgeSpec, EdgeStatus } from '../../../resources/edge/index.ts'
import type { LoadBalancerSpec, LoadBalancerStatus } from '../../../resources/load-balancer/index.ts'
import type { AuditEffects } from '../../kit/audit.ts'
import type { ActionWith } from '../../kit/effects.ts'
import type { Machine, MachineEffects } from '../managed-machine/index.ts'
import type { RouterFacts } from '../../network/ovn/router.ts'

export type EdgeObject = KubeObject<EdgeSpec, EdgeStatus>

export interface Observed {
  /** Undefined when the namespace is no account's. */
  readonly accountId: string | undefined
  readonly claim: EdgeClaim | undefined
  /** Its zone has private networks now. */
  readonly hasNetworks: boolean
  /** Undefined while it does not exist, or has no ranges yet. */
  readonly network:
    | {
        readonly uid: string
        readonly ipv4Cidr: string
        readonly ipv6Prefix: string
        /** A router of the customer is attached to it. */
        readonly isAtRouter: boolean
      }
    | undefined
  /** The resolvers of the zone. */
  readonly resolvers: readonly string[]
  /** Its machines, including those that are being deleted. */
  readonly machines: readonly Machine[]
  /** Names of Servers that are missing without an order: claims or guests of them are left. */
  readonly lost: readonly string[]
  /** The edge's own load balancer, including one that is being deleted. */
  readonly pair: KubeObject<LoadBalancerSpec, LoadBalancerStatus> | undefined
  /** Digest of the rows that were last written for the edge's own router, which it has where the network has no
   *  other. */
  readonly routerDigest: string | undefined
  /** The newest sequence that the hosts have installed; undefined when it is not known. */
  readonly installed: number | undefined
  /** Ids of servers of the network without a public IPv4 address. */
  readonly serversWithoutIpv4: readonly string[]
  /** Edits that start no operation. */
  readonly edits: readonly KubernetesRequest[]
  /** The actor of the edit that has no operation. */
  readonly editor: string
}

/** The gateway of the network, and the router to it; no way out without a gateway. */
export interface Announcement {
  readonly accountId: string
  readonly edgeId: string
  readonly networkId: string
  readonly gateway: Gateway | undefined
  /** The edge's own router; none where a router of the customer has that role. */
  readonly router: RouterFacts | undefined
  readonly zone: string
}

/** The machines that the account may have. */
export type EdgeGrant = NonNullable<EdgeStatus['granted']>

/** The effects of edges by name, each with its input. */
export interface EdgeEffects extends AuditEffects, MachineEffects {
  readonly claim: EdgeDemand & { readonly granted: EdgeGrant }
  /** Makes the network and the hosts route to the gateway. */
  readonly announce: Announcement
  /** Releases what it has claimed. */
  readonly release: { readonly id: EdgeId | undefined }
}
export type EdgeEffect = ActionWith<EdgeEffects>

/** Whether PostgreSQL granted the claims of the edge. */
export const CLAIMED = 'Claimed'
