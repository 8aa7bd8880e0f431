/** Keyset pagination, newest first. */
import { type RawBuilder, sql } from 'kysely'

/** The position of a row in its list. */
export interface ListPlace {
  readonly createdAt: Date
  readonly id: string
}

interface Listable {
  where(condition: RawBuilder<boolean>): this
  orderBy(column: 'created_at' | 'id', direction: 'desc'): this
  limit(count: number): this
}

/** A page of the query's rows: at most `limit` after the position. Its table has `created_at` and `id`. */
export const newestFirst = <Query extends Listable>(query: Query, after: ListPlace | undefined, limit: number): Query =>
  query.where(comesAfter(after)).orderBy('created_at', 'desc').orderBy('id', 'desc').limit(limit)

/** Condition for rows after the position; true without one. The columns are those that the list is ordered by. */
export const comesAfter = (
  place: ListPlace | undefined,
  { createdAt, id }: { readonly createdAt: string; readonly id: string } = { createdAt: 'created_at', id: 'id' },
): RawBuilder<boolean> =>
  place === undefined
    ? sql<boolean>`true`
    : sql<boolean>`(${sql.ref(createdAt)}, ${sql.ref(id)}) < (${place.createdAt}, ${place.id})`
