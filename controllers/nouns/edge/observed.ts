/** What the edge controller knows of the world when it decides, and what it may decide. */
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
  /** Undefined while it is not there, or has no ranges yet. */
  readonly network:
    | {
        readonly uid: string
        readonly ipv4Cidr: string
        readonly ipv6Prefix: string
        /** A router of the customer leads on from it. */
        readonly isAtRouter: boolean
      }
    | undefined
  /** Who is asked for names. */
  readonly resolvers: readonly string[]
  /** Those that it has, with those that are on their way out. */
  readonly machines: readonly Machine[]
  /** The load balancer of its own, also one that is on its way out. */
  readonly pair: KubeObject<LoadBalancerSpec, LoadBalancerStatus> | undefined
  /** Of the router that it has itself where the network has no other; the digest of what was written last. */
  readonly routerDigest: string | undefined
  /** The newest sequence that the hosts have installed; undefined when nobody knows. */
  readonly installed: number | undefined
  /** Ids of servers of the network without a public IPv4 address. */
  readonly serversWithoutIpv4: readonly string[]
  /** Edits that start no operation. */
  readonly edits: readonly KubernetesRequest[]
  /** Who made the edit that no operation stands for, as an actor. */
  readonly editor: string
}

/** Where the network leads out, with the router that leads there; nowhere without a gateway. */
export interface Announcement {
  readonly accountId: string
  readonly edgeId: string
  readonly networkId: string
  readonly gateway: Gateway | undefined
  /** That of the edge itself; none where a router of the customer does it. */
  readonly router: RouterFacts | undefined
  readonly zone: string
}

/** The machines that the account may have. */
export type Granted = NonNullable<EdgeStatus['granted']>

/** The effects of edges by name, each with its input. */
export interface EdgeEffects extends AuditEffects, MachineEffects {
  readonly claim: EdgeDemand & { readonly granted: Granted }
  /** The network and the hosts lead there. */
  readonly announce: Announcement
  /** Gives back what it has claimed. */
  readonly release: { readonly id: EdgeId | undefined }
}
export type EdgeEffect = ActionWith<EdgeEffects>

/** What PostgreSQL was asked for an edge, and whether it was granted. */
export const CLAIMED = 'Claimed'
