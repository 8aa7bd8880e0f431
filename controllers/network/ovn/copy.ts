/** A copy in memory of an OVN database, kept current by the database's notifications (`monitor_cond_since`,
 *  ovsdb-server(7)). */

export type Atom = string | number | boolean | readonly ['uuid', string]
export type EncodedValue =
  | Atom
  | readonly ['set', readonly Atom[]]
  | readonly ['map', readonly (readonly [Atom, Atom])[]]
export type Columns = Readonly<Record<string, EncodedValue>>

/** An update2 message: the row was inserted, existed initially, was modified, or was deleted. */
interface RowUpdate {
  readonly insert?: Columns
  readonly initial?: Columns
  readonly modify?: Columns
  readonly delete?: unknown
}
export type TableUpdates = Readonly<Record<string, Readonly<Record<string, RowUpdate>>>>

/** Which columns are sets of many or maps: an update contains only the difference of those. */
export type ColumnKindOf = (table: string, column: string) => 'scalar' | 'set' | 'map'

export interface CopiedRow {
  readonly table: string
  readonly uuid: string
  readonly columns: Columns
}

export interface Copy {
  get(uuid: string): CopiedRow | undefined
  /** Answers the ids of the rows that changed. */
  take(updates: TableUpdates): readonly CopiedChange[]
  /** Forgets everything. */
  clear(): void
}

export interface CopiedChange {
  readonly uuid: string
  readonly before: CopiedRow | undefined
  readonly after: CopiedRow | undefined
}

export function openCopy(kindOf: ColumnKindOf): Copy {
  const rows = new Map<string, CopiedRow>()
  const changed = (table: string, before: CopiedRow | undefined, { modify = {} }: RowUpdate): Columns => ({
    ...before?.columns,
    ...Object.fromEntries(
      Object.entries(modify).map(([column, value]) => [
        column,
        merge(kindOf(table, column), before?.columns[column], value),
      ]),
    ),
  })
  return {
    get: (uuid) => rows.get(uuid),
    clear: () => rows.clear(),
    take: (updates) =>
      Object.entries(updates).flatMap(([table, ofTable]) =>
        Object.entries(ofTable).map(([uuid, update]): CopiedChange => {
          const before = rows.get(uuid)
          if ('delete' in update) {
            rows.delete(uuid)
            return { uuid, before, after: undefined }
          }
          const after = { table, uuid, columns: update.insert ?? update.initial ?? changed(table, before, update) }
          rows.set(uuid, after)
          return { uuid, before, after }
        }),
      ),
  }
}

function merge(kind: ReturnType<ColumnKindOf>, before: EncodedValue | undefined, change: EncodedValue): EncodedValue {
  if (kind === 'scalar') return change
  const members = new Map(setMembers(before).map((member) => [memberKey(kind, member), member]))
  for (const member of setMembers(change)) {
    const key = memberKey(kind, member)
    const known = members.get(key)
    // A member that is in both is removed; a map's key with another value gets that value.
    if (known !== undefined && textOf(known) === textOf(member)) members.delete(key)
    else members.set(key, member)
  }
  // Rebuilt from the parts of an encoded value.
  return [kind, [...members.values()]] as unknown as EncodedValue
}

const memberKey = (kind: 'set' | 'map', member: unknown): string =>
  textOf(kind === 'map' && Array.isArray(member) ? member[0] : member)

const textOf = (value: unknown): string => JSON.stringify(value)

/** Members of a set, which is encoded as its only member when it has one; pairs of a map. */
export function setMembers(value: EncodedValue | undefined): readonly unknown[] {
  if (value === undefined) return []
  if (typeof value !== 'object') return [value]
  const [kind, members] = value
  return kind === 'uuid' ? [value] : members
}

/** Values that the database omits because they are the default. */
const DEFAULTS: readonly string[] = ['""', '0', 'false']

/** The same text for the same value: order is irrelevant, and a default equals an absent value. */
export function canonical(value: EncodedValue | undefined): string {
  const text = setMembers(value).map(textOf).sort().join()
  return DEFAULTS.includes(text) ? '' : text
}

export const pairsOf = (value: EncodedValue | undefined): ReadonlyMap<string, string> =>
  new Map(setMembers(value) as readonly (readonly [string, string])[]) // a map of texts has such pairs
