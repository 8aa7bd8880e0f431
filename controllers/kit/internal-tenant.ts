/** The platform's own tenants in object storage: one for each purpose and owner, so that the key of one gives access to
 *  nothing else. */
import { unavailable, Unavailable } from '../../domain/problem.ts'
import {
  findInternalTenant,
  internalBucketOf,
  type InternalTenantId,
  internalTenantOf,
  internalTenantOwner,
  type InternalTenantRow,
  keepInternalTenant,
  listAbandonedTenants,
  recordToldTenant,
  removeInternalTenant,
} from '../../db/internal-tenant/index.ts'
import { AUDIT_PURPOSE, auditTenantKeys } from '../../integrations/object-storage/audit-place.ts'
import { offerIn } from '../../integrations/object-storage/configuration.ts'
import { fingerprintOfSecret, type ObjectStorage } from '../../integrations/object-storage/control.ts'
import { newTenantKeys } from '../../integrations/object-storage/keys.ts'
import type { Sealing } from '../../kit/sys/sealing.ts'
import { Outages } from '../../kit/sys/outages.ts'
import { mayTakeAway } from './absence.ts'
import { orUnavailable } from './outage.ts'
import type { Parts } from './parts.ts'

type StoreParts = Pick<Parts, 'db' | 'clock' | 'random' | 'objectStorage'> & { readonly sealing?: Sealing }

/** What a client needs to use the place. */
export interface InternalPlace {
  readonly store: ObjectStorage
  readonly bucket: string
  readonly accessKeyId: string
  readonly secretAccessKey: string
}

/** Nobody is billed for it by the byte. */
const QUOTA_BYTES = 2 ** 50
const SWEEP_MILLISECONDS = 600_000
/** Failures of a sweep at one store after which the store counts as unavailable. */
const FAILURES_IN_A_ROW_MAXIMUM = 5

const servedBy = (
  { objectStorage }: Pick<Parts, 'objectStorage'>,
  zone: string,
  backend?: ObjectStorage['backend'],
): ObjectStorage | undefined => {
  const offer = offerIn(objectStorage ?? { stores: [], obstacle: '' }, zone, backend)
  return 'obstacle' in offer ? undefined : offer
}

/** Whether the platform can store anything there. */
export const hasObjectStorage = (parts: Pick<StoreParts, 'objectStorage' | 'sealing'>, zone: string): boolean =>
  parts.sealing?.isAvailable === true && servedBy(parts, zone) !== undefined

/** Creates the tenant where needed, and configures the store with its key. Throws 503 where there is no object storage,
 *  and Unavailable while a store is unavailable that does not know the tenant yet. */
export async function openInternalTenant(parts: StoreParts, id: InternalTenantId): Promise<InternalPlace> {
  const { db, sealing } = parts
  const known = await orUnavailable(findInternalTenant(db, id))
  const store = servedBy(parts, id.zone, known?.backend)
  if (store === undefined) throw unavailable('not_configured', `Zone ${id.zone} has no object storage.`)
  if (sealing?.isAvailable !== true)
    throw unavailable('not_configured', 'This needs sealing keys, which this deployment does not have.')
  const row = known ?? (await orUnavailable(keepInternalTenant(db, newRow(parts, sealing, { ...id, store }))))
  const place = placeOf(store, row, sealing)
  try {
    await tell(store, row, place.secretAccessKey)
  } catch (error) {
    // A store that is unavailable for a while keeps the tenants that it knows: its users see that it is unavailable,
    // and report it.
    if (!(error instanceof Unavailable) || row.toldAt === null) throw error
  }
  if (row.toldAt === null) await orUnavailable(recordToldTenant(db, row, parts.clock.now()))
  return place
}

/** The place as it was last opened, without asking the store; undefined before. Throws Unavailable. */
export async function findInternalPlace(
  parts: Pick<StoreParts, 'db' | 'objectStorage' | 'sealing'>,
  id: InternalTenantId,
): Promise<InternalPlace | undefined> {
  const { db, sealing } = parts
  const row = await orUnavailable(findInternalTenant(db, id))
  const store = row && servedBy(parts, id.zone, row.backend)
  return row === undefined || store === undefined || sealing?.isAvailable !== true
    ? undefined
    : placeOf(store, row, sealing)
}

const placeOf = (store: ObjectStorage, row: Omit<InternalTenantRow, 'toldAt'>, sealing: Sealing): InternalPlace => ({
  store,
  bucket: internalBucketOf(row),
  accessKeyId: row.accessKeyId,
  secretAccessKey: sealing.open(row.sealedSecret, internalTenantOwner(row)),
})

function newRow(
  { random, clock }: Pick<StoreParts, 'random' | 'clock'>,
  sealing: Sealing,
  { store, purpose, owner, zone }: InternalTenantId & { readonly store: ObjectStorage },
): Omit<InternalTenantRow, 'toldAt'> {
  const derived = purpose === AUDIT_PURPOSE ? auditTenantKeys(sealing)[0] : undefined
  const { secretAccessKey, ...keys } = derived ?? newTenantKeys(random)
  const id = { purpose, owner, zone }
  const sealedSecret = sealing.seal(secretAccessKey, internalTenantOwner(id))
  return { ...id, ...keys, backend: store.backend, sealedSecret, createdAt: clock.now() }
}

/** Writes only when the store has different values. */
async function tell({ control }: ObjectStorage, row: InternalTenantRow, secretAccessKey: string): Promise<void> {
  const tenant = await control.getTenant(internalTenantOf(row))
  const isTold =
    tenant?.secretFingerprint === fingerprintOfSecret(secretAccessKey) &&
    tenant.quotaBytes === QUOTA_BYTES &&
    tenant.bucketCount > 0
  if (isTold) return
  await control.putTenant(internalTenantOf(row), {
    accessKeyId: row.accessKeyId,
    secretAccessKey,
    bucketPrefix: row.bucketPrefix,
    quotaBytes: QUOTA_BYTES,
    isSuspended: false,
    isFrozen: false,
    buckets: [internalBucketOf(row)],
  })
}

/** Removes the tenant with everything that it holds. Does nothing when it no longer exists. Throws Unavailable. */
export async function removeInternalPlace(
  parts: Pick<StoreParts, 'db' | 'objectStorage'>,
  row: InternalTenantRow,
): Promise<void> {
  const store = servedBy(parts, row.zone, row.backend)
  if (store === undefined) throw new Unavailable(`the object storage of zone ${row.zone}`, undefined)
  await store.control.removeTenant(internalTenantOf(row), true)
  await orUnavailable(removeInternalTenant(parts.db, row))
}

/** Removes what the platform stored for deleted accounts and clusters, until the signal aborts. */
export async function runInternalTenantSweeper(parts: StoreParts & Pick<Parts, 'log'>, signal: AbortSignal) {
  const outages = new Outages(parts, 'internal tenants not swept')
  while (!signal.aborted) {
    await outages.attempt(() => sweepInternalTenants(parts))
    await parts.clock.sleep(SWEEP_MILLISECONDS, signal)
  }
}

/** Sweeps each zone by itself: an unavailable store blocks no other, and is not asked for every removal. Throws one of
 *  the failures at the end. */
export async function sweepInternalTenants(parts: Pick<StoreParts, 'db' | 'objectStorage'>): Promise<void> {
  if (!(await mayTakeAway(parts))) return
  const abandoned = await orUnavailable(listAbandonedTenants(parts.db))
  const byStore = Map.groupBy(abandoned, ({ zone, backend }) => `${zone} ${backend}`)
  const sweeps = await Promise.all([...byStore.values()].map((rows) => sweepStore(parts, rows)))
  for (const failure of sweeps) if (failure !== undefined) throw failure
}

/** Answers the last failure. A tenant that cannot be removed blocks no other. */
async function sweepStore(
  parts: Pick<StoreParts, 'db' | 'objectStorage'>,
  rows: readonly InternalTenantRow[],
): Promise<unknown> {
  let [failure, inARow]: [unknown, number] = [undefined, 0]
  for (const row of rows) {
    try {
      await removeInternalPlace(parts, row)
      inARow = 0
    } catch (error) {
      failure = error
      inARow += 1
      if (inARow >= FAILURES_IN_A_ROW_MAXIMUM) break
    }
  }
  return failure
}
