/** The state of the audit log's chains according to the checkpoints in object storage. */
import { Unavailable } from '../../../domain/problem.ts'
import { findAuditTenant, internalBucketOf } from '../../../db/internal-tenant/index.ts'
import type { Database } from '../../../db/kit/open.ts'
import { StoreFailed } from '../../../kit/chunks/object-store.ts'
import { openAuditStore } from '../../../integrations/object-storage/audit-place.ts'
import { readCheckpoints, type Testimony } from '../../../integrations/object-storage/checkpoints.ts'
import type { ObjectStorageOffer } from '../../../integrations/object-storage/configuration.ts'
import type { Clock } from '../../../kit/sys/clock.ts'
import type { Sealing } from '../../../kit/sys/sealing.ts'

export interface TestimonyParts {
  readonly db: Database
  readonly clock: Clock
  readonly sealing?: Sealing
  readonly objectStorage?: ObjectStorageOffer | undefined
}

/** Undefined where there are no checkpoints. Throws Unavailable while the object storage does not answer. */
export async function readTestimony({
  db,
  clock,
  sealing,
  objectStorage,
}: TestimonyParts): Promise<Testimony | undefined> {
  if (sealing?.isAvailable !== true || objectStorage === undefined) return undefined
  const row = await findAuditTenant(db)
  const store = row && openAuditStore({ objectStorage, sealing, clock }, { ...row, bucket: internalBucketOf(row) })
  if (store === undefined) return undefined
  try {
    return await readCheckpoints(store, sealing, clock.now())
  } catch (error) {
    throw error instanceof StoreFailed ? new Unavailable('the object storage', error) : error
  }
}
