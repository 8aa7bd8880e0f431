/** Which stores of the platform know a tenant, and what each of them is told. */
import { type ObjectStorageOffer, offerIn } from './configuration.ts'
import type { ObjectStorage, TenantSettings } from './control.ts'

/** Where a tenant is. */
export interface Placement {
  readonly zone: string
  readonly backend: ObjectStorage['backend']
  /** When it came from the single host; null for one that has not moved. */
  readonly movedAt: Date | null
}

export interface Told {
  /** What keeps its objects. */
  readonly keeper: ObjectStorage
  /** The store that its clients connect to. */
  readonly entrance: ObjectStorage
  /** Where the entrance passes its requests on to; absent where that keeps the objects itself. */
  readonly upstream?: TenantSettings['upstream']
}

const SOURCE_KEPT_MILLISECONDS = 7 * 86_400_000

/** Whoever has moved is reached through the front end as before, for good; what was stored behind that is kept for a
 *  week. */
export function toldOf(
  offer: ObjectStorageOffer,
  { zone, backend, movedAt }: Placement,
  now: Date,
): Told | { readonly obstacle: string } {
  const keeper = offerIn(offer, zone, backend)
  if ('obstacle' in keeper || movedAt === null) return 'obstacle' in keeper ? keeper : { keeper, entrance: keeper }
  const entrance = offerIn(offer, zone, 'svc-s3-single')
  if ('obstacle' in entrance) return entrance
  const isSourceKept = now.getTime() < movedAt.getTime() + SOURCE_KEPT_MILLISECONDS
  return { keeper, entrance, upstream: { ...keeper.upstreamOf(zone), isSourceKept } }
}

/** All of them know it so from now on: the keeper first, so that no client is let in there with an older secret. Throws
 *  Unavailable. */
export async function tellTenant(
  { keeper, entrance, upstream }: Told,
  id: string,
  settings: TenantSettings,
): Promise<void> {
  await keeper.control.putTenant(id, settings)
  if (entrance !== keeper) await entrance.control.putTenant(id, { ...settings, upstream })
}

/** False while it has buckets. Throws Unavailable. */
export async function forgetTenant({ keeper, entrance }: Told, id: string): Promise<boolean> {
  if (!(await keeper.control.removeTenant(id))) return false
  return entrance === keeper || entrance.control.removeTenant(id, true)
}
