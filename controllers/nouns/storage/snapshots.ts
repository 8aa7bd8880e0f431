/** What the host shall do about the snapshots in the disk of a storage: those that are to be taken or removed, whether
 *  people asked for them or a copy of the storage begins as one. What is not named stays as it is, so that a view of
 *  the world that is behind never ends a snapshot. Pure. */
import type { VolumeSpec, VolumeStatus } from '../../../resources/instance/index.ts'
import type { VolumeObject } from './volumes.ts'

export type WantedSnapshots = NonNullable<VolumeSpec['snapshots']>

/** A snapshot of the storage, or a storage that is made as a copy of it. */
export interface Point {
  readonly uid: string
  readonly is: 'to_be_taken' | 'taken' | 'to_be_removed'
}

/** In the order of their names, so that the order of a cache changes nothing. A copy has its point for as long as it is
 *  made. `strays` are in the disk and nobody knows them. */
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
