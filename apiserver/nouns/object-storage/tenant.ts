/** The object storage of an account in a zone, its key, and the stores that know it. */
import { findObjectStorageIn, objectStorageOwner, type ObjectStorageRow } from '../../../db/object-storage/index.ts'
import { notFound, unavailable } from '../../../domain/problem.ts'
import type { ObjectStorageOffer } from '../../../integrations/object-storage/configuration.ts'
import { type TenantStores, tenantStoresOf } from '../../../integrations/object-storage/tenant-stores.ts'
import type { Sealing } from '../../../kit/sys/sealing.ts'
import type { Parts } from '../../kit/parts.ts'
import type { ObjectStorages } from './objects.ts'
import { objectStorageNotOffered } from './rules.ts'

export type ObjectStorageParts = Parts & { readonly sealing: Sealing; readonly objectStorages: ObjectStorages }

export const NOWHERE: ObjectStorageOffer = { stores: [], obstacle: 'this cloud has none configured' }

/** Throws 404. */
export async function findIn({ db }: Pick<Parts, 'db'>, accountId: string, zone: string): Promise<ObjectStorageRow> {
  return requireRow(await findObjectStorageIn(db, accountId, zone))
}

/** The backend that has the tenant. Throws 503. */
export function requireTold({ objectStorage = NOWHERE, clock }: Parts, row: ObjectStorageRow): TenantStores {
  const stores = tenantStoresOf(objectStorage, row, clock.now())
  if ('obstacle' in stores) throw objectStorageNotOffered(row.zone, stores.obstacle)
  return stores
}

/** Throws 404. */
export function requireRow(row: ObjectStorageRow | undefined): ObjectStorageRow {
  if (row === undefined) throw notFound('object storage')
  return row
}

/** Throws 503 where no sealing key is configured. */
export function requireSealing({ sealing }: ObjectStorageParts): void {
  if (!sealing.isAvailable)
    throw unavailable('not_configured', 'Object storage needs sealing keys, which this deployment does not have.')
}

export function credentialsOf(parts: ObjectStorageParts, row: ObjectStorageRow) {
  requireSealing(parts)
  return {
    access_key_id: row.accessKeyId,
    secret_access_key: parts.sealing.open(row.sealedSecret, objectStorageOwner(row.accountId, row.id)),
  }
}
