/** Where object storage can be had. */
import { unavailable } from '../../domain/problem.ts'
import { Zone } from '../../resources/catalog/index.ts'
import { unknownZone } from '../catalog/index.ts'
import type { Parts } from '../parts.ts'

/** By what the zone says of itself. Throws 400 for a zone that is not there, and 503 for one that keeps no objects. */
export function requireOffering({ caches }: Pick<Parts, 'caches'>, name: string): void {
  const zone = caches.of(Zone).get({ name })
  if (zone === undefined) throw unknownZone({ caches }, name)
  if (zone.status?.objectStorageBackend === undefined)
    throw notOffered(name, zone.status?.objectStorageObstacle ?? 'nothing is known of it yet')
}

/** 503 with the reason, which says what to do about it where that is known. */
export const notOffered = (zone: string, obstacle: string) =>
  unavailable('not_configured', `Zone ${zone} has no object storage: ${obstacle}.`)
