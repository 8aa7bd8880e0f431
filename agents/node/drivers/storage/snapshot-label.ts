/** All that there is to know of a snapshot is written with it, in its name in the disk, so that a snapshot and what is
 *  known of it are there together or not at all. */
import type { HeldSnapshot } from './volume-store.ts'

const LABEL = /^([^ ]+) (\d+) (frozen|running)$/

export const labelOf = ({ name, sizeGibibytes, isFrozen }: HeldSnapshot): string =>
  `${name} ${sizeGibibytes} ${isFrozen ? 'frozen' : 'running'}`

export interface LabelledSnapshot extends HeldSnapshot {
  readonly label: string
}

/** Bytes by label as bytes by name. */
export const namedRoom = (room: ReadonlyMap<string, number>): ReadonlyMap<string, number> =>
  new Map(readLabels([...room.keys()]).map(({ name, label }) => [name, room.get(label) ?? 0]))

/** Of what is named otherwise, nothing. */
export const readLabels = (labels: readonly string[]): readonly LabelledSnapshot[] =>
  labels.flatMap((label) => {
    const [, name, size, how] = LABEL.exec(label) ?? []
    return name === undefined ? [] : [{ name, sizeGibibytes: Number(size), isFrozen: how === 'frozen', label }]
  })
