/** The source of a new storage: checks that it is the account's and can be read now, and finds the zone, size and hosts
 *  that follow from it. One judge for each kind; everything with a source calls `resolveSource`. */
import { isMachineId } from '../../domain/managed-machine/rules.ts'
import { requireReadableBackup } from '../../domain/backup/rules.ts'
import { requireOnlineImage } from '../../domain/custom-image/rules.ts'
import { CustomImage, customImageFactsOf } from '../../resources/custom-image/index.ts'
import { Backup, backupFactsOf } from '../../resources/backup/index.ts'
import { Zone } from '../../resources/catalog/index.ts'
import { badField, forbidden, notFound } from '../../domain/problem.ts'
import { requireReadableSnapshot } from '../../domain/snapshot/rules.ts'
import { requireReadableStorage } from '../../domain/storage/rules.ts'
import type { claimStorage } from '../../db/storage/index.ts'
import type { KubeObject, ResourceType } from '../../kit/kube/object.ts'
import { Snapshot, snapshotFactsOf } from '../../resources/snapshot/index.ts'
import { storedOf } from '../../resources/kit/shapes.ts'
import {
  Storage,
  storageFactsOf,
  type StorageSource,
  type StorageSpec,
  type StorageStatus,
} from '../../resources/storage/index.ts'
import { requireBackupZone } from './backups.ts'
import type { World } from './world.ts'

export type StorageObject = KubeObject<StorageSpec, StorageStatus>

/** A storage, named as its holders name it: its snapshots, and copies of it. */
export const heldOf = ({ metadata: { name }, spec, status }: StorageObject): NonNullable<Place['copyOf']> => ({
  storageId: name,
  bootServerId: spec.isBoot ? spec.serverId : undefined,
  isShared: status?.pool !== undefined,
})

export interface SourceReading {
  readonly world: World
  /** Of the requesting account. */
  readonly namespace: string
}

/** The hosts that can create a storage from its source, as claims name them. */
type Place = Pick<Parameters<typeof claimStorage>[1], 'nodes' | 'isFromBackup' | 'copyOf'>

interface JudgedSource {
  readonly zone: string
  /** Minimum size of a storage created from it. */
  readonly sizeGibibytes: number
}

/** Throws 404 for a source that is not the account's, and 409 for one that cannot be read now. */
type Judge = (reading: SourceReading, id: string) => JudgedSource

const JUDGES: Readonly<Record<StorageSource['kind'], Judge>> = {
  template() {
    throw forbidden('Boot storages are made by the platform only, with their servers.')
  },
  backup({ world, namespace }, id) {
    const backup = world.find(Backup, { namespace, name: id })
    if (backup === undefined || backup.metadata.deletionTimestamp !== undefined) throw notFound('backup')
    requireReadableBackup(backupFactsOf(storedOf(backup)))
    const zone = backup.status?.zone ?? ''
    requireBackupZone(world, zone)
    return { zone, sizeGibibytes: backup.status?.sizeGibibytes ?? 0 }
  },
  snapshot(reading, id) {
    const snapshot = reading.world.find(Snapshot, { namespace: reading.namespace, name: id })
    if (snapshot === undefined || snapshot.metadata.deletionTimestamp !== undefined) throw notFound('snapshot')
    requireReadableSnapshot(snapshotFactsOf(storedOf(snapshot)))
    const { spec } = originOf(reading, { kind: 'snapshot', id })
    return { zone: spec.zone, sizeGibibytes: snapshot.status?.sizeGibibytes ?? spec.sizeGibibytes }
  },
  storage({ world, namespace }, id) {
    const storage = isMachineId(id) ? undefined : world.find(Storage, { namespace, name: id })
    if (storage === undefined || storage.metadata.deletionTimestamp !== undefined) throw notFound('storage')
    requireReadableStorage(storageFactsOf(storedOf(storage)))
    return storage.spec
  },
  image({ world, namespace }, id) {
    const image = world.find(CustomImage, { namespace, name: id })
    if (image === undefined) throw notFound('custom image')
    requireOnlineImage(customImageFactsOf(storedOf(image)))
    return { zone: image.spec.zone, sizeGibibytes: image.status?.sizeGibibytes ?? 1 }
  },
}

/** Zone and minimum size of a storage created from the source. Throws what the judge of its kind throws. */
export const judgeSource = (reading: SourceReading, { kind, id }: StorageSource): JudgedSource =>
  JUDGES[kind](reading, id)

/** Kinds that the judges look up. */
export const SOURCE_READS: readonly ResourceType[] = [Backup, Zone, Storage, Snapshot, CustomImage]

/** The storage that the source is a point in time of. Throws 404. */
function originOf({ world, namespace }: SourceReading, { kind, id }: StorageSource): StorageObject {
  const snapshot = kind === 'snapshot' ? world.find(Snapshot, { namespace, name: id }) : undefined
  if (kind === 'snapshot' && snapshot === undefined) throw notFound('snapshot')
  const storage = world.find(Storage, { namespace, name: snapshot?.spec.storageId ?? id })
  if (storage === undefined) throw notFound('storage')
  return storage
}

/** The hosts that can create a storage from the source: only one host reads what is on its own disks, and a storage
 *  that is copied stays where it is until then. Throws 404. */
export function placeOfSource(reading: SourceReading, source: StorageSource | undefined): Place {
  if (source?.kind === 'backup') return { isFromBackup: true }
  if (source?.kind !== 'snapshot' && source?.kind !== 'storage') return {}
  const storage = originOf(reading, source)
  const { pool, nodeName } = storage.status ?? {}
  return {
    ...(pool !== undefined || nodeName === undefined ? {} : { nodes: [nodeName] }),
    ...(source.kind === 'storage' ? { copyOf: heldOf(storage) } : {}),
  }
}

interface Demand {
  readonly source?: StorageSource | undefined
  readonly zone: string | undefined
  readonly sizeGibibytes: number | undefined
}

/** Zone and size of a new storage. Throws 400 for values that do not fit the source or are missing without one, and
 *  what the judge of its kind throws. */
export function resolveSource(reading: SourceReading, { source, zone, sizeGibibytes }: Demand): JudgedSource {
  const judged = source && judgeSource(reading, source)
  if (judged === undefined) {
    if (zone === undefined) throw badField('zone', 'is needed without a source')
    if (sizeGibibytes === undefined) throw badField('sizeGibibytes', 'is needed without a source')
    return { zone, sizeGibibytes }
  }
  if (zone !== undefined && zone !== judged.zone)
    throw badField('zone', `the source is in zone ${judged.zone}, and what is made from it too`)
  if (sizeGibibytes !== undefined && sizeGibibytes < judged.sizeGibibytes)
    throw badField('sizeGibibytes', `must be at least ${judged.sizeGibibytes}: the source has that size`)
  return { zone: judged.zone, sizeGibibytes: sizeGibibytes ?? judged.sizeGibibytes }
}
