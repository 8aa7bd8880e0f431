/** Queries of the rows of one table whose columns have given values: those of an account, or one of them by its id. */
import type {
  DeleteQueryBuilder,
  DeleteResult,
  Expression,
  SelectQueryBuilder,
  SelectType,
  UpdateQueryBuilder,
  UpdateResult,
} from 'kysely'
import type { Queries } from './open.ts'
import type { Tables } from '../tables.ts'

/** Null is not allowed: no row equals it. */
type Values<Table extends keyof Tables> = {
  readonly [Column in keyof Tables[Table]]?: Value<Exclude<SelectType<Tables[Table][Column]>, null>>
}
type Value<Type> = Type | Expression<Type>

interface Filterable {
  where(column: string, operator: '=', value: unknown): this
}

/** Throws without a value, and for one that is undefined: the query would match more rows than intended. */
function filtered(query: Filterable, values: object): unknown {
  const entries = Object.entries(values)
  const absent = entries.filter(([, value]) => value === undefined).map(([column]) => column)
  if (entries.length === 0 || absent.length > 0) throw new Error(`a query without a value of [${absent.join(', ')}]`)
  return entries.reduce((narrowed, [column, value]) => narrowed.where(column, '=', value), query)
}

// Kysely's builders have no type while their table is a parameter: they are built as for any one table, and returned as
// those of the actual table.
type AnyTable = 'account'

/** Selects no column yet. */
export const selectWhere = <Table extends keyof Tables>(db: Queries, table: Table, values: Values<Table>) =>
  // of the table that is named
  filtered(db.selectFrom(table as AnyTable), values) as SelectQueryBuilder<Tables, Table, object>

export const updateWhere = <Table extends keyof Tables>(db: Queries, table: Table, values: Values<Table>) =>
  // of the table that is named
  filtered(db.updateTable(table as AnyTable), values) as UpdateQueryBuilder<Tables, Table, Table, UpdateResult>

export const deleteWhere = <Table extends keyof Tables>(db: Queries, table: Table, values: Values<Table>) =>
  // of the table that is named
  filtered(db.deleteFrom(table as AnyTable), values) as DeleteQueryBuilder<Tables, Table, DeleteResult>
