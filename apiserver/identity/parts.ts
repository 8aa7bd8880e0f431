/** What the identity handlers are built from. */
import type { Database } from '../../db/kit/open.ts'
import type { Cursors } from '../../kit/http/cursor.ts'
import type { ObjectStorageOffer } from '../../integrations/object-storage/configuration.ts'
import type { Clock } from '../../kit/sys/clock.ts'
import type { Store } from '../../kit/kube/store.ts'
import type { Logger } from '../../kit/sys/log.ts'
import type { Random } from '../../kit/sys/random.ts'
import type { Callers } from './callers.ts'
import type { Passwords } from './passwords.ts'
import type { Provider } from './providers/protocol.ts'
import type { Sealing } from '../../kit/sys/sealing.ts'
import type { Tickets } from './tickets.ts'

export interface IdentityParts {
  readonly db: Database
  /** For the namespaces of new accounts. */
  readonly store: Store
  readonly clock: Clock
  readonly random: Random
  readonly log: Logger
  /** Origin of the portal, without a slash at the end. */
  readonly origin: string
  /** Origin of the portal of the staff, without a slash at the end; empty when it is not known. */
  readonly staffOrigin: string
  readonly canSendMail: boolean
  readonly cursors: Cursors
  readonly callers: Callers
  readonly passwords: Passwords
  readonly csrfTokenOf: (sessionId: string) => string
  readonly sealing: Sealing
  readonly tickets: Tickets
  /** Keys the hashes of recovery codes. */
  readonly recoveryKey: Uint8Array
  /** In button order. */
  readonly providers: readonly Provider[]
  /** Whether staff need the customer's consent for read-only access too; for changes they always do. */
  readonly needsReadOnlyConsent: boolean
  /** Where checkpoints of the audit log are; nowhere when absent. */
  readonly objectStorage?: ObjectStorageOffer
}
