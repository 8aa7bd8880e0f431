/** A copy in memory of the platform's rows in the northbound database, by owner. */
import { type CopiedChange, type CopiedRow, openCopy, type TableUpdates } from './copy.ts'
import { rowOwnerOf } from './difference.ts'
import { tableShape, type Table, TABLES } from './row.ts'

export interface OwnedRows {
  get(uuid: string): CopiedRow | undefined
  of(owner: string): readonly CopiedRow[]
  /** The owners that have rows in the zone, without the zone's name. */
  ownersIn(zone: string): readonly string[]
  take(updates: TableUpdates): void
  clear(): void
}

export const nameOfOwner = ({ zone, owner }: { readonly zone: string; readonly owner: string }): string =>
  `${zone} ${owner}`

const isTable = (name: string): name is Table => name in TABLES

/** `onChange` is called for each row that changed, once for each owner that it has or had. `onSequence` is called with
 *  nb_cfg, which arrives with the rows. */
export function openOwnedRows({
  onChange,
  onSequence,
}: {
  readonly onChange: (owner: string, change: CopiedChange) => void
  readonly onSequence: (sequence: number) => void
}): OwnedRows {
  const copy = openCopy((table, column) => (isTable(table) ? (tableShape(table).columns[column] ?? 'map') : 'scalar'))
  const uuids = new Map<string, Set<string>>()
  const forget = (owner: string, uuid: string) => {
    const own = uuids.get(owner)
    own?.delete(uuid)
    if (own?.size === 0) uuids.delete(owner)
  }
  const note = (change: CopiedChange) => {
    const { uuid, before, after } = change
    if ((after ?? before)?.table === 'NB_Global') return onSequence(Number(after?.columns['nb_cfg'] ?? 0))
    const [old, now] = [before, after].map((row) => row && nameOfOwner(rowOwnerOf(row)))
    if (old !== undefined && old !== now) forget(old, uuid)
    if (now !== undefined) uuids.set(now, (uuids.get(now) ?? new Set()).add(uuid))
    for (const owner of new Set([old, now])) if (owner !== undefined) onChange(owner, change)
  }
  return {
    get: (uuid) => copy.get(uuid),
    of: (owner) => [...(uuids.get(owner) ?? [])].flatMap((uuid) => copy.get(uuid) ?? []),
    ownersIn: (zone) =>
      [...uuids.keys()].flatMap((name) => (name.startsWith(`${zone} `) ? [name.slice(zone.length + 1)] : [])),
    take: (updates) => copy.take(updates).forEach(note),
    clear() {
      copy.clear()
      uuids.clear()
    },
  }
}
