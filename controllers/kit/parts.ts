/** The parts that every controller is built from. */
import type { Database } from '../../db/kit/open.ts'
import type { Caches } from '../../kit/kube/caches.ts'
import type { ControlPlanesOffer } from '../../integrations/control-planes/configuration.ts'
import type { ObjectStorageOffer } from '../../integrations/object-storage/configuration.ts'
import type { OrganisationPlatform } from '../../integrations/organisation-platform/platform.ts'
import type { Store } from '../../kit/kube/store.ts'
import type { Clock } from '../../kit/sys/clock.ts'
import type { Logger } from '../../kit/sys/log.ts'
import type { Random } from '../../kit/sys/random.ts'
import type { SweepRate } from './sweep-rate.ts'
import type { Ovn } from '../network/ovn/ovn.ts'

export interface Parts {
  readonly store: Store
  readonly caches: Caches
  readonly db: Database
  readonly clock: Clock
  readonly random: Random
  readonly log: Logger
  /** The bound of all sweeps of the process. */
  readonly sweepRate: SweepRate
  /** The deployment cannot send mail, so every address counts as confirmed. */
  readonly areAddressesConfirmed?: boolean | undefined
  /** Absent where the zones have no private networks. */
  readonly ovn?: Ovn
  /** Object storage for customers; absent where there is none. */
  readonly objectStorage?: ObjectStorageOffer
  /** The hosting of Kubernetes control planes; absent where there is none. */
  readonly controlPlanes?: ControlPlanesOffer
  /** Where organisations of accounts see their clusters; absent where there is none. */
  readonly organisationPlatform?: OrganisationPlatform | undefined
}
