/** Rows for statements with a bounded number of parameters. */

/** PostgreSQL counts the parameters of a statement in 16 bits. */
const PARAMETERS_MAXIMUM = 65_535

/** The rows in their order, in parts that one statement each can insert; none for no rows. A column counts when any row
 *  has it: Kysely names the same columns for all rows. */
export function* chunksOf<Row extends object>(rows: readonly Row[]): Generator<Row[]> {
  const columns = new Set(rows.flatMap((row) => Object.keys(row))).size
  const size = Math.floor(PARAMETERS_MAXIMUM / Math.max(1, columns))
  for (let index = 0; index < rows.length; index += size) yield rows.slice(index, index + size)
}
