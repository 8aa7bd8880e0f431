/** Sources from which databases can be restored: archives of existing ones, and of those that were deleted lately. */
import { type DatabaseBackups, type DatabaseOrigin, requireReachable } from '../../../domain/database/rules.ts'
import { badField, conflict, notFound, zoneLacks } from '../../../domain/problem.ts'
import { findArchive } from '../../../db/database/index.ts'
import type { KubeObject } from '../../../kit/kube/object.ts'
import { Zone } from '../../../resources/catalog/index.ts'
import { Database, type DatabaseSpec, type DatabaseStatus } from '../../../resources/database/index.ts'
import { accountNamespace } from '../../../resources/index.ts'
import type { Parts } from '../../kit/parts.ts'

type ArchiveParts = Pick<Parts, 'caches' | 'db' | 'clock'>

export interface Restorable extends Omit<DatabaseOrigin, 'backups'> {
  readonly zone: string
  /** Undefined without an archive. */
  readonly backups: DatabaseBackups | undefined
}

/** The database of the account, or its remains. Throws 404. */
export async function findRestorable(parts: ArchiveParts, accountId: string, databaseId: string): Promise<Restorable> {
  const key = { namespace: accountNamespace(accountId), name: databaseId }
  const archive = await findArchive(parts.db, { accountId, databaseId })
  const { origin, keptUntil = null, zone = '' } = archive ?? {}
  if (origin) {
    if (keptUntil === null || keptUntil <= parts.clock.now()) throw notFound('database')
    return { ...origin, zone }
  }
  const database = parts.caches.of(Database).get(key)
  if (database === undefined) throw notFound('database')
  return { ...database.spec, backups: database.status?.backups }
}

export interface RestoreDemand {
  readonly accountId: string
  readonly databaseId: string
  /** The latest when null. */
  readonly targetTime: string | null
  readonly zone?: string
  readonly storageGibibytes?: number
}

/** Names of the judged fields, as the caller has them. */
const API_FIELDS = { zone: 'zone', targetTime: 'target_time', storageGibibytes: 'storage_gibibytes' } as const
export const OBJECT_FIELDS = {
  zone: 'spec.zone',
  targetTime: 'spec.restoredFrom.targetTime',
  storageGibibytes: 'spec.storageGibibytes',
} as const

/** What is restored. Throws 404 for a source that does not exist, 409 for one that has no archive or no backup yet, and
 *  400 for a moment that the archive does not reach, another zone, and a storage that is smaller. */
export async function requireRestorable(
  parts: ArchiveParts,
  { accountId, databaseId, targetTime, zone, storageGibibytes }: RestoreDemand,
  fields: { readonly [Field in keyof typeof API_FIELDS]: string } = API_FIELDS,
): Promise<Restorable> {
  const origin = await findRestorable(parts, accountId, databaseId)
  if (parts.caches.of(Zone).get({ name: origin.zone })?.status?.objectStorageBackend === undefined)
    throw zoneLacks('object_storage', `The zone ${origin.zone} has no object storage now, where the archive is.`)
  if (origin.backups?.isOpen !== true)
    throw conflict('state_not_allowed', 'The database has no archive that it could be restored from.')
  requireReachable(origin.backups, targetTime, fields.targetTime)
  if (zone !== undefined && zone !== origin.zone)
    throw badField(fields.zone, `must be ${origin.zone}, where the archive is`)
  if (storageGibibytes !== undefined && storageGibibytes < origin.storageGibibytes)
    throw badField(fields.storageGibibytes, `must be ${origin.storageGibibytes} at least, as the origin has`)
  return origin
}

/** For databases as objects of Kubernetes. */
export const restoreOf = (
  accountId: string,
  { spec }: Pick<KubeObject<DatabaseSpec, DatabaseStatus>, 'spec'>,
): RestoreDemand | undefined =>
  spec.restoredFrom && {
    accountId,
    databaseId: spec.restoredFrom.databaseId,
    targetTime: spec.restoredFrom.targetTime ?? null,
    zone: spec.zone,
    storageGibibytes: spec.storageGibibytes,
  }
