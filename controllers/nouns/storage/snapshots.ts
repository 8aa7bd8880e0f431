/** The snapshots in the disk of a storage that the host must take or remove, whether people requested them or a copy of
 *  the storage starts as one. A snapshot that is not named stays as it is, so that a stale view never removes a
 *  snapshot. Pure. */
import type { VolumeSpec, VolumeStatus } from '../../../resources/instance/index.ts'
import type { VolumeObject } from './volumes.ts'

export type WantedSnapshots = NonNullable<VolumeSpec['snapshots']>

/** A snapshot of the storage, or a storage that is created as a copy of it. */
export interface Point {
  readonly uid: string
  readonly is: 'to_be_taken' | 'taken' | 'to_be_removed'
}

/** Sorted by name, so that the order of a cache has no effect. A copy has its point for as long as it is being created.
 *  `strays` are in the disk and belong to nothing. */
export function wantedSnapshots(
  points: readonly Point[],
  strays: readonly string[],
  { isMoving }: { readonly isMoving: boolean },
): WantedSnapshots | undefined {
  const wanted: WantedSnapshots = [
    ...points.flatMap(
      ({ uid, is }): WantedSnapshots =>
        is === 'to_be_removed'
          ? [{ name: uid, shall: 'go' }]
          : is === 'to_be_taken' && !isMoving
            ? [{ name: uid, shall: 'be' }]
            : [],
    ),
    ...strays.map((name) => ({ name, shall: 'go' as const })),
  ]
  return wanted.length === 0
    ? undefined
    : wanted.toSorted((one, other) => (one.name < other.name ? -1 : 1)).slice(0, SNAPSHOTS_MAXIMUM)
}

const SNAPSHOTS_MAXIMUM = 512

/** The names of snapshots in the disk that are no point of the storage. */
export const unknownSnapshots = (volumes: readonly VolumeObject[], points: readonly Point[]): readonly string[] =>
  [...new Set(volumes.flatMap(({ status }) => namesOf(status)))].filter(
    (name) => !points.some(({ uid }) => uid === name),
  )

const namesOf = (status: VolumeStatus | undefined): readonly string[] =>
  (status?.snapshots ?? []).map(({ name }) => name)

export const hasSnapshot = ({ status }: VolumeObject, name: string): boolean => namesOf(status).includes(name)
