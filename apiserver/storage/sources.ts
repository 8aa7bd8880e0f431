/** What a new storage is made from, whichever door asks for it: that the source is the account's, that it can be read
 *  now, and what zone, size and hosts follow from it. One judge for each kind; whatever takes sources calls
 *  `resolveSource`. */
import { isMachineId } from '../../domain/managed-machine.ts'
import { requireReadableBackup } from '../../domain/backup-rules.ts'
import { requireOnlineImage } from '../../domain/custom-image-rules.ts'
import { CustomImage, customImageFactsOf } from '../../resources/custom-image/index.ts'
import { Backup, backupFactsOf } from '../../resources/backup/index.ts'
import { Zone } from '../../resources/catalog/index.ts'
import { requireBackupZone } from '../backup/index.ts'
import { badField, forbidden, notFound } from '../../domain/problem.ts'
import { requireReadableSnapshot } from '../../domain/snapshot-rules.ts'
import { requireReadableStorage } from '../../domain/storage-rules.ts'
import type { claimStorage } from '../../db/storage/index.ts'
import type { Caches } from '../../kit/kube/caches.ts'
import type { ResourceType } from '../../kit/kube/object.ts'
import { Snapshot, snapshotFactsOf } from '../../resources/snapshot/index.ts'
import { type CreateStorage, Storage, storageFactsOf, type StorageSource } from '../../resources/storage/index.ts'
import { storedOf } from '../list/stored.ts'
import { heldOf, type StorageObject } from './held.ts'

export interface SourceReading {
  readonly caches: Caches
  /** Of the account that asks. */
  readonly namespace: string
}

/** What follows from a source that can be read now. */
export interface JudgedSource {
  readonly zone: string
  /** Least size of what is made from it. */
  readonly sizeGibibytes: number
  /** The hosts that can read it, when not every host of the zone can. */
  readonly nodes?: readonly string[]
  /** Only hosts that reach the store of the zone's backups can. */
  readonly isFromBackup?: boolean
  /** A storage that it is a copy of, as claims name it. */
  readonly copyOf?: NonNullable<Parameters<typeof claimStorage>[1]['copyOf']>
}

/** Throws 404 for a source that is not the account's, and 409 for one that cannot be read now. `field` is where the
 *  request names it. */
type Judge = (reading: SourceReading, id: string, field: string) => JudgedSource

const JUDGES: Readonly<Record<StorageSource['kind'], Judge>> = {
  template() {
    throw forbidden('Boot storages are made by the platform only, with their servers.')
  },
  backup({ caches, namespace }, id) {
    const backup = caches.of(Backup).get({ namespace, name: id })
    if (backup === undefined || backup.metadata.deletionTimestamp !== undefined) throw notFound('backup')
    requireReadableBackup(backupFactsOf(storedOf(backup)))
    const zone = backup.status?.zone ?? ''
    requireBackupZone({ caches }, zone)
    return { zone, sizeGibibytes: backup.status?.sizeGibibytes ?? 0, isFromBackup: true }
  },
  snapshot({ caches, namespace }, id) {
    const snapshot = caches.of(Snapshot).get({ namespace, name: id })
    if (snapshot === undefined || snapshot.metadata.deletionTimestamp !== undefined) throw notFound('snapshot')
    requireReadableSnapshot(snapshotFactsOf(storedOf(snapshot)))
    const storage = caches.of(Storage).get({ namespace, name: snapshot.spec.storageId })
    if (storage === undefined) throw notFound('storage')
    return { ...placeOf(storage), sizeGibibytes: snapshot.status?.sizeGibibytes ?? storage.spec.sizeGibibytes }
  },
  storage({ caches, namespace }, id) {
    const storage = isMachineId(id) ? undefined : caches.of(Storage).get({ namespace, name: id })
    if (storage === undefined || storage.metadata.deletionTimestamp !== undefined) throw notFound('storage')
    requireReadableStorage(storageFactsOf(storedOf(storage)))
    return {
      ...placeOf(storage),
      sizeGibibytes: storage.spec.sizeGibibytes,
      copyOf: heldOf(storage),
    }
  },
  image({ caches, namespace }, id) {
    const image = caches.of(CustomImage).get({ namespace, name: id })
    if (image === undefined) throw notFound('custom image')
    requireOnlineImage(customImageFactsOf(storedOf(image)))
    return { zone: image.spec.zone, sizeGibibytes: image.status?.sizeGibibytes ?? 1 }
  },
}

/** Zone and least size of what is made from the source. `field` is where the request names it. Throws what the judge of
 *  its kind throws. */
export const judgeSource = (reading: SourceReading, { kind, id }: StorageSource, field: string): JudgedSource =>
  JUDGES[kind](reading, id, field)

/** Kinds that the judges look up in the caches. */
export const SOURCE_READS: readonly ResourceType[] = [Backup, Zone, Storage, Snapshot, CustomImage]

/** What lies on the disks of one host is read by that one only. */
const placeOf = ({ spec, status }: StorageObject): Pick<JudgedSource, 'zone' | 'nodes'> => ({
  zone: spec.zone,
  ...(status?.pool !== undefined || status?.nodeName === undefined ? {} : { nodes: [status.nodeName] }),
})

/** As a request names what is asked for. */
export interface SourceFields {
  readonly source: string
  readonly zone: string
  readonly size: string
}

interface Demand {
  readonly source: StorageSource | undefined
  readonly zone: string | undefined
  readonly sizeGibibytes: number | undefined
}

/** Zone and size of a new storage, and the hosts that can make it. Throws 400 for what does not fit the source or is
 *  missing without one, and what the judge of its kind throws. */
export function resolveSource(
  reading: SourceReading,
  { source, zone, sizeGibibytes }: Demand,
  fields: SourceFields,
): JudgedSource {
  const judged = source && JUDGES[source.kind](reading, source.id, fields.source)
  if (judged === undefined) {
    if (zone === undefined) throw badField(fields.zone, 'is needed without a source')
    if (sizeGibibytes === undefined) throw badField(fields.size, 'is needed without a source')
    return { zone, sizeGibibytes }
  }
  if (zone !== undefined && zone !== judged.zone)
    throw badField(fields.zone, `the source is in zone ${judged.zone}, and what is made from it too`)
  if (sizeGibibytes !== undefined && sizeGibibytes < judged.sizeGibibytes)
    throw badField(fields.size, `must be at least ${judged.sizeGibibytes}: the source has that size`)
  return { ...judged, sizeGibibytes: sizeGibibytes ?? judged.sizeGibibytes }
}

/** The source that a request names, and its field. Throws 400 for more than one. */
export function sourceOf(body: Pick<CreateStorage, 'source_backup_id' | 'source_snapshot_id' | 'source_storage_id'>): {
  readonly source: StorageSource | undefined
  readonly field: string
} {
  const named = (['backup', 'snapshot', 'storage'] as const).flatMap((kind) => {
    const field = `source_${kind}_id` as const
    const id = body[field]
    return id === undefined || id === null ? [] : [{ source: { kind, id }, field }]
  })
  const [first, second] = named
  if (second !== undefined) throw badField(second.field, 'a storage is made from one source only')
  return first ?? { source: undefined, field: '' }
}
