/** The archive of a database: one of the platform's own tenants in the object storage of the zone, one for each
 *  database. It outlives the database for as long as a customer may restore from it. */
import { boundedQuotaBytes } from '../../../domain/database/archive-room.ts'
import type { Measurement } from '../../../domain/billing/metered-bytes.ts'
import { Unavailable } from '../../../domain/problem.ts'
import {
  addArchive,
  archiveBucketOf,
  archiveCipherOwner,
  type ArchiveRow,
  archiveSecretOwner,
  archiveTenantOf,
  type DatabaseId,
  endArchive,
  findArchive,
  listExpiredArchives,
  removeEndedArchive,
} from '../../../db/database/index.ts'
import { ARCHIVE_HOST } from '../../../integrations/object-storage/archive.ts'
import { archivesIn } from '../../../integrations/object-storage/configuration.ts'
import {
  fingerprintOfSecret,
  measurementOf,
  type ObjectStorage,
  type TenantState,
} from '../../../integrations/object-storage/control.ts'
import { newSecret, newTenantKeys } from '../../../integrations/object-storage/keys.ts'
import type { Sealing } from '../../../kit/sys/sealing.ts'
import { Outages } from '../../../kit/sys/outages.ts'
import type { DatabaseSpec } from '../../../resources/database/index.ts'
import type { Repository } from '../../../resources/managed-machine/index.ts'
import { orUnavailable } from '../../kit/outage.ts'
import type { Parts } from '../../kit/parts.ts'

/** The port on the host, which forwards it to the store. */
const RELAY_PORT = 443
const REGION = 'us-east-1'
const SWEEP_MILLISECONDS = 600_000

export interface ArchiveState {
  readonly row: ArchiveRow | undefined
  /** The store has it as the row says, as far as is known. */
  readonly isOpen: boolean
  /** The store applies the quota that the database has now, as far as is known. */
  readonly isBounded: boolean
  /** Bytes that it holds; undefined while that is not known. */
  readonly usedBytes?: number
  readonly measurement?: Measurement
  /** The authority of the store's certificate, in PEM. */
  readonly authority: string
}

/** The fields of a database that its archive depends on. */
export type ArchivedSpec = Pick<DatabaseSpec, 'zone' | 'storageGibibytes'>

/** Why databases of the zone have no archive, for people; empty when they have one. */
export function archiveObstacleIn({ objectStorage }: Pick<Parts, 'objectStorage'>, zone: string): string {
  const offer = archivesIn(objectStorage ?? { stores: [], obstacle: 'this cloud has none' }, zone)
  return 'obstacle' in offer
    ? `Nothing is archived, and the database cannot be restored: its zone has no place for it (${offer.obstacle}).`
    : ''
}

const servedIn = ({ objectStorage }: Pick<Parts, 'objectStorage'>, zone: string): ObjectStorage | undefined => {
  const offer = archivesIn(objectStorage ?? { stores: [], obstacle: '' }, zone)
  return 'obstacle' in offer ? undefined : offer
}

const usageOf = (tenant: TenantState) => ({ usedBytes: tenant.usedBytes, measurement: measurementOf(tenant) })

/** Undefined in a zone that has no store. */
export async function observeArchive(
  parts: Parts & { readonly sealing: Sealing },
  id: DatabaseId,
  { zone, storageGibibytes }: ArchivedSpec,
): Promise<ArchiveState | undefined> {
  const served = servedIn(parts, zone)
  if (served === undefined) return undefined
  const row = await orUnavailable(findArchive(parts.db, id))
  const authority = served.certificateAuthority ?? ''
  if (row === undefined) return { row, isOpen: false, isBounded: false, authority }
  const wanted = fingerprintOfSecret(parts.sealing.open(row.sealedSecret, archiveSecretOwner(row)))
  try {
    const tenant = await served.control.getTenant(archiveTenantOf(row))
    const isOpen = tenant?.secretFingerprint === wanted
    const isBounded = tenant?.quotaBytes === boundedQuotaBytes(storageGibibytes, tenant)
    return { row, isOpen, isBounded, authority, ...(tenant && usageOf(tenant)) }
  } catch (error) {
    if (!(error instanceof Unavailable)) throw error
    // A store that is unavailable for a while keeps the archives that it knows.
    return { row, isOpen: true, isBounded: true, authority }
  }
}

/** Creates it in the store. Throws Unavailable. */
export async function openArchive(
  parts: Parts & { readonly sealing: Sealing },
  id: DatabaseId,
  { zone, storageGibibytes }: ArchivedSpec,
): Promise<void> {
  const served = servedIn(parts, zone)
  if (served === undefined) return
  const { secretAccessKey, ...keys } = newTenantKeys(parts.random)
  await orUnavailable(
    addArchive(parts.db, {
      ...id,
      ...keys,
      zone,
      sealedSecret: parts.sealing.seal(secretAccessKey, archiveSecretOwner(id)),
      sealedCipherKey: parts.sealing.seal(newSecret(parts.random), archiveCipherOwner(id)),
    }),
  )
  const row = await orUnavailable(findArchive(parts.db, id))
  if (row === undefined) return
  await served.control.putTenant(archiveTenantOf(row), {
    accessKeyId: row.accessKeyId,
    secretAccessKey: parts.sealing.open(row.sealedSecret, archiveSecretOwner(row)),
    bucketPrefix: row.bucketPrefix,
    quotaBytes: boundedQuotaBytes(storageGibibytes, await served.control.getTenant(archiveTenantOf(row))),
    isSuspended: false,
    isFrozen: false,
    buckets: [archiveBucketOf(row)],
  })
}

/** The repository, as its machine needs it; undefined in a zone that has no store. */
export function repositoryOf(
  parts: Pick<Parts, 'objectStorage'> & { readonly sealing: Sealing },
  row: ArchiveRow,
): Repository | undefined {
  const served = servedIn(parts, row.zone)
  return (
    served && {
      endpoint: ARCHIVE_HOST,
      port: RELAY_PORT,
      region: REGION,
      bucket: archiveBucketOf(row),
      accessKeyId: row.accessKeyId,
      secretAccessKey: parts.sealing.open(row.sealedSecret, archiveSecretOwner(row)),
      cipherKey: parts.sealing.open(row.sealedCipherKey, archiveCipherOwner(row)),
      authority: served.certificateAuthority ?? '',
    }
  )
}

/** Removes expired archives of deleted databases, until the signal aborts. */
export async function runArchiveSweeper(parts: Parts, signal: AbortSignal): Promise<void> {
  const outages = new Outages(parts, 'archives not swept')
  while (!signal.aborted) {
    await outages.attempt(() => sweepArchives(parts))
    await parts.clock.sleep(SWEEP_MILLISECONDS, signal)
  }
}

/** An archive whose store is unavailable blocks no other. Throws the first failure. */
export async function sweepArchives(parts: Pick<Parts, 'db' | 'clock' | 'objectStorage' | 'log'>): Promise<void> {
  const now = parts.clock.now()
  const failures: unknown[] = []
  for (const id of await listExpiredArchives(parts.db, now))
    await sweepArchive(parts, id, now).catch((error: unknown) => void failures.push(error))
  if (failures.length > 0) throw failures[0]
}

/** Its row stays until the store is empty. */
async function sweepArchive(parts: Pick<Parts, 'db' | 'objectStorage'>, id: DatabaseId, now: Date): Promise<void> {
  const row = await endArchive(parts.db, id, now)
  if (row === undefined) return
  const served = servedIn(parts, row.zone)
  if (served === undefined) throw new Unavailable(`the object storage of zone ${row.zone}`)
  await served.control.removeTenant(archiveTenantOf(row), true)
  await removeEndedArchive(parts.db, id)
}
