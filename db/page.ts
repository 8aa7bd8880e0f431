/** Lists of rows that go on where the last page ended, newest first. */
import { type RawBuilder, sql } from 'kysely'

/** Where a row stands in its list. */
export interface ListPlace {
  readonly createdAt: Date
  readonly id: string
}

/** Condition of the rows that come after the place; of every row without one. The columns are those that the list is
 *  ordered by. */
export const comesAfter = (
  place: ListPlace | undefined,
  { createdAt, id }: { readonly createdAt: string; readonly id: string } = { createdAt: 'created_at', id: 'id' },
): RawBuilder<boolean> =>
  place === undefined
    ? sql<boolean>`true`
    : sql<boolean>`(${sql.ref(createdAt)}, ${sql.ref(id)}) < (${place.createdAt}, ${place.id})`
