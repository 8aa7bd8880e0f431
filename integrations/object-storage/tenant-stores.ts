/** The stores of the platform that know a tenant, and the settings for each of them. */
import { type ObjectStorageOffer, offerIn } from './configuration.ts'
import type { ObjectStorage, TenantSettings } from './control.ts'

/** The location of a tenant. */
export interface Placement {
  readonly zone: string
  readonly backend: ObjectStorage['backend']
  /** When it moved from the single host; null when it has not moved. */
  readonly movedAt: Date | null
}

export interface TenantStores {
  /** The store with its objects. */
  readonly keeper: ObjectStorage
  /** The store that its clients connect to. */
  readonly entrance: ObjectStorage
  /** Where the entrance forwards its requests; absent when the entrance itself has the objects. */
  readonly upstream?: TenantSettings['upstream']
}

const SOURCE_KEPT_MILLISECONDS = 7 * 86_400_000

/** Clients of a tenant that has moved permanently use the front end as before. The old data behind it are kept for a
 *  week. */
export function tenantStoresOf(
  offer: ObjectStorageOffer,
  { zone, backend, movedAt }: Placement,
  now: Date,
): TenantStores | { readonly obstacle: string } {
  const keeper = offerIn(offer, zone, backend)
  if ('obstacle' in keeper || movedAt === null) return 'obstacle' in keeper ? keeper : { keeper, entrance: keeper }
  const entrance = offerIn(offer, zone, 'svc-s3-single')
  if ('obstacle' in entrance) return entrance
  const isSourceKept = now.getTime() < movedAt.getTime() + SOURCE_KEPT_MILLISECONDS
  return { keeper, entrance, upstream: { ...keeper.upstreamOf(zone), isSourceKept } }
}

/** Sends the settings to all stores, to the keeper first, so that it no longer accepts an older secret. Throws
 *  Unavailable. */
export async function sendTenantSettings(
  { keeper, entrance, upstream }: TenantStores,
  id: string,
  settings: TenantSettings,
): Promise<void> {
  await keeper.control.putTenant(id, settings)
  if (entrance !== keeper) await entrance.control.putTenant(id, { ...settings, upstream })
}

/** Returns false while the tenant has buckets. Throws Unavailable. */
export async function forgetTenant({ keeper, entrance }: TenantStores, id: string): Promise<boolean> {
  if (!(await keeper.control.removeTenant(id))) return false
  return entrance === keeper || entrance.control.removeTenant(id, true)
}
