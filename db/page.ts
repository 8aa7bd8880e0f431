/** Keyset pagination, newest first. */
import { type RawBuilder, sql } from 'kysely'

/** The position of a row in its list. */
export interface ListPlace {
  readonly createdAt: Date
  readonly id: string
}

/** Condition for rows after the position; true without one. The columns are those that the list is ordered by. */
export const comesAfter = (
  place: ListPlace | undefined,
  { createdAt, id }: { readonly createdAt: string; readonly id: string } = { createdAt: 'created_at', id: 'id' },
): RawBuilder<boolean> =>
  place === undefined
    ? sql<boolean>`true`
    : sql<boolean>`(${sql.ref(createdAt)}, ${sql.ref(id)}) < (${place.createdAt}, ${place.id})`
