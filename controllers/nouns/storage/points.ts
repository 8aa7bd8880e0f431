/** What the storage controller reads about the snapshots of a storage, the copies that are created from it, and its own
 *  source. */
import { wasRemovalOrdered } from '../../../db/removal/index.ts'
import { orUnavailable } from '../../kit/outage.ts'
import { Snapshot } from '../../../resources/snapshot/index.ts'
import { Storage } from '../../../resources/storage/index.ts'
import { Volume } from '../../../resources/instance/index.ts'
import type { Parts } from '../../kit/parts.ts'
import type { Observed } from './observed.ts'
import { type Point, unknownSnapshots } from './snapshots.ts'
import type { StorageObject, VolumeObject } from './volumes.ts'

export const SNAPSHOTS_OF = 'snapshots of the storage'
export const COPIES_OF = 'copies of the storage'
export const OF_SNAPSHOT = 'made from the snapshot'

type SnapshotObject = ReturnType<typeof snapshotsIn>[number]
const snapshotsIn = (caches: Parts['caches'], key: string) => caches.of(Snapshot).by(SNAPSHOTS_OF, key)

/** Before the claim, nothing is known to keep the data where it is. */
const isClaimed = (status: SnapshotObject['status']): boolean =>
  status?.conditions?.some(({ type, status: granted }) => type === 'Claimed' && granted === 'True') === true

const pointOf = ({ metadata: { uid = '', deletionTimestamp }, spec, status }: SnapshotObject): Point => ({
  uid,
  is:
    deletionTimestamp !== undefined || spec.operation?.kind === 'snapshot.delete' || status?.state === 'error'
      ? 'to_be_removed'
      : status?.state === 'online'
        ? 'taken'
        : isClaimed(status)
          ? 'to_be_taken'
          : 'taken',
})

/** A copy that is complete, or never will be, no longer needs its point. */
const pointOfCopy = ({ metadata: { uid = '', deletionTimestamp }, status }: StorageObject): readonly Point[] =>
  deletionTimestamp === undefined && (status?.state ?? 'creating') === 'creating' ? [{ uid, is: 'to_be_taken' }] : []

/** A snapshot in the disk that no cache has is looked up in the store: caches may be behind. One that belongs to
 *  nothing is removed when its deletion was ordered, or when it belongs to a copy that has ended. Otherwise it stays:
 *  Kubernetes restored from an older state does not have the snapshots that were taken since. */
export async function readPoints(
  { caches, store, db }: Parts,
  { metadata: { namespace = '', name } }: StorageObject,
  volumes: readonly VolumeObject[],
): Promise<{ readonly points: readonly Point[]; readonly strays: readonly string[] }> {
  const key = `${namespace}/${name}`
  const points = [
    ...snapshotsIn(caches, key).map(pointOf),
    ...caches.of(Storage).by(COPIES_OF, key).flatMap(pointOfCopy),
  ]
  const unknown = unknownSnapshots(volumes, points)
  if (unknown.length === 0) return { points, strays: [] }
  const storages = (await store.list(Storage, { namespace })).items
  const known = [
    ...(await store.list(Snapshot, { namespace })).items.map(({ metadata }) => metadata.uid ?? ''),
    ...storages.flatMap(pointOfCopy).map(({ uid }) => uid),
  ]
  const strays: string[] = []
  for (const uid of unknown.filter((one) => !known.includes(one))) {
    const isOfCopy = storages.some(({ metadata }) => metadata.uid === uid)
    if (isOfCopy || (await orUnavailable(wasRemovalOrdered(db, uid)))) strays.push(uid)
  }
  return { points, strays }
}

/** The source of a storage that is created from a snapshot, or as a copy of another. Undefined when that no longer
 *  exists. */
export function readOrigin(caches: Parts['caches'], storage: StorageObject): Observed['origin'] {
  const { namespace = '', uid = '' } = storage.metadata
  const { source } = storage.spec
  if (source?.kind !== 'snapshot' && source?.kind !== 'storage') return undefined
  const snapshot = source.kind === 'snapshot' ? caches.of(Snapshot).get({ namespace, name: source.id }) : undefined
  if (source.kind === 'snapshot' && snapshot === undefined) return undefined
  const of = caches.of(Storage).get({ namespace, name: snapshot?.spec.storageId ?? source.id })
  if (of === undefined) return undefined
  return {
    storage: of,
    volumes: caches.of(Volume).by('storage', of.metadata.uid ?? ''),
    point: snapshot === undefined ? uid : (snapshot.metadata.uid ?? ''),
    isReady: snapshot === undefined || snapshot.status?.state === 'online',
    isLost: snapshot?.metadata.deletionTimestamp !== undefined || snapshot?.status?.state === 'error',
  }
}
