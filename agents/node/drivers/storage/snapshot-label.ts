/** All facts about a snapshot are encoded in its name in the disk, so that the snapshot and its facts exist together or
 *  not at all. */
import type { HeldSnapshot } from './volume-store.ts'

const LABEL = /^([^ ]+) (\d+) (frozen|running)$/

export const labelOf = ({ name, sizeGibibytes, isFrozen }: HeldSnapshot): string =>
  `${name} ${sizeGibibytes} ${isFrozen ? 'frozen' : 'running'}`

export interface LabelledSnapshot extends HeldSnapshot {
  readonly label: string
}

/** Converts sizes by label to sizes by name. */
export const namedRoom = (room: ReadonlyMap<string, number>): ReadonlyMap<string, number> =>
  new Map(readLabels([...room.keys()]).map(({ name, label }) => [name, room.get(label) ?? 0]))

/** Skips labels of another form. */
export const readLabels = (labels: readonly string[]): readonly LabelledSnapshot[] =>
  labels.flatMap((label) => {
    const [, name, size, how] = LABEL.exec(label) ?? []
    return name === undefined ? [] : [{ name, sizeGibibytes: Number(size), isFrozen: how === 'frozen', label }]
  })
