/** Rows with their columns named as the code names fields. */

type Camel<Name extends string> = Name extends `${infer Head}_${infer Tail}`
  ? `${Head}${Capitalize<Camel<Tail>>}`
  : Name

export type CamelRow<Row> = { readonly [Column in keyof Row & string as Camel<Column>]: Row[Column] }

/** The row with each column under its name in camelCase. For rows of which all selected columns are wanted: others
 *  would come along. */
export function camelRow<Row extends object>(row: Row): CamelRow<Row> {
  const fields = Object.entries(row).map(([column, value]) => [
    column.replaceAll(/_([a-z0-9])/g, (_, letter: string) => letter.toUpperCase()),
    value,
  ])
  return Object.fromEntries(fields) as CamelRow<Row> // the names are made as the type says
}
