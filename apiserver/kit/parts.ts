/** What handlers are built from. Each takes the few members it needs. */
import type { LoopbackTwins } from '../../domain/network/loopback-twins.ts'
import type { CatchUp } from './change/catch-up.ts'
import type { GroupCommit } from '../../db/kit/group-commit.ts'
import type { Database } from '../../db/kit/open.ts'
import type { Cursors } from '../../kit/http/cursor.ts'
import type { Operator } from '../../kit/http/call.ts'
import type { OperatorAccess } from '../../kit/http/route.ts'
import type { Caches } from '../../kit/kube/caches.ts'
import type { ControlPlanesOffer } from '../../integrations/control-planes/configuration.ts'
import type { HostClustersSettings } from '../../integrations/control-planes/host-clusters.ts'
import type { ObjectStorageOffer } from '../../integrations/object-storage/configuration.ts'
import type { Payments } from '../../integrations/payments/configuration.ts'
import type { Store } from '../../kit/kube/store.ts'
import type { Clock } from '../../kit/sys/clock.ts'
import type { Logger } from '../../kit/sys/log.ts'
import type { Random } from '../../kit/sys/random.ts'
import type { CommittedChange } from './change/commit-audit.ts'

export interface Parts {
  readonly store: Store
  readonly caches: Caches
  readonly db: Database
  readonly clock: Clock
  readonly random: Random
  readonly log: Logger
  readonly cursors: Cursors
  /** Ends accepted changes, those of an account together. */
  readonly commitAudit: GroupCommit<CommittedChange, void>
  /** Absent where no payment processor is configured. */
  readonly payments?: Payments
  /** Stores objects for customers; absent where nothing does. */
  readonly objectStorage?: ObjectStorageOffer
  /** Hosts control planes of Kubernetes; absent where nothing does. */
  readonly controlPlanes?: ControlPlanesOffer
  /** How hosts of control planes are created; absent where none is. */
  readonly hostClusters?: HostClustersSettings | undefined
  /** Organisations of accounts can see their clusters on an organisation platform. */
  readonly hasOrganisationPlatform?: boolean
  /** The deployment cannot send mail, so every address counts as confirmed. */
  readonly areAddressesConfirmed?: boolean | undefined
  /** Whether the process serves the admission webhook, and the Kubernetes API calls it. Where that is not so, writes
   *  past the API are judged after they are stored. */
  readonly isWebhookCalled?: () => boolean
  /** Other replicas answer customers too: every replica must immediately show what another has written. */
  readonly hasPeers?: boolean
  /** Brings the caches up to what customers were shown. */
  readonly catchUp: CatchUp
  /** Addresses by which the machine of the API server reaches its servers; none when absent. */
  readonly loopbackTwins?: LoopbackTwins | undefined
  /** Throws 403 unless the management cluster authorizes the operator; staff sessions always pass, because they have
   *  roles. */
  readonly requireAccess: (
    operator: Operator,
    access: Pick<OperatorAccess, 'verb' | 'resource'>,
    namespace?: string,
  ) => Promise<void>
}
