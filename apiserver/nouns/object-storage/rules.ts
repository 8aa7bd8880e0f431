/** Where object storage is available. */
import { unknownZone } from '../../../changes/kit/zone.ts'
import { worldOf } from '../../../changes/kit/world.ts'
import { zoneLacks } from '../../../domain/problem.ts'
import { Zone } from '../../../resources/catalog/index.ts'
import type { ObjectStorageBackend } from '../../../resources/object-storage/index.ts'
import type { Parts } from '../../kit/parts.ts'

/** The backend that stores the objects of new tenants, according to the zone's status. Throws 400 for a zone that does
 *  not exist, and 409 for one that stores no objects. */
export function requireOffering({ caches }: Pick<Parts, 'caches'>, name: string): ObjectStorageBackend {
  const zone = caches.of(Zone).get({ name })
  if (zone === undefined) throw unknownZone(worldOf(caches), name)
  const { objectStorageBackend: backend, objectStorageObstacle: obstacle } = zone.status ?? {}
  if (backend === undefined) throw objectStorageNotOffered(name, obstacle ?? 'nothing is known of it yet')
  return backend
}

/** 409, or 503 for routes without 409, with the cause, which says what to do about it where that is known. */
export const objectStorageNotOffered = (zone: string, obstacle: string) =>
  zoneLacks('object_storage', `Zone ${zone} has no object storage: ${obstacle}.`)
