/** The sealed values in the database, by the key that unseals them: every column whose name starts with `sealed_`. */

/** Runs one statement and returns its rows. */
export type Ask = (text: string) => Promise<readonly Record<string, unknown>[]>

export interface SealedUse {
  readonly keyId: string
  /** As `backup_key.sealed_key`. */
  readonly column: string
  readonly count: number
}

/** Reads every such column: used when a key is missing, not at each start. */
export async function listSealedUses(ask: Ask): Promise<readonly SealedUse[]> {
  const columns = await ask(
    `select table_name, column_name from information_schema.columns
     where table_schema = current_schema() and column_name like 'sealed\\_%' order by table_name, column_name`,
  )
  const uses: SealedUse[] = []
  for (const { table_name: table, column_name: column } of columns)
    for (const { id, count } of await ask(
      `select split_part("${String(column)}", '.', 1) as id, count(*)::int as count from "${String(table)}"
       where "${String(column)}" is not null group by 1 order by 1`,
    ))
      uses.push({ keyId: String(id), column: `${String(table)}.${String(column)}`, count: Number(count) })
  return uses
}

/** For people: `3 of backup_key.sealed_key, 1 of edge.sealed_host_key`. */
export const usesText = (uses: readonly SealedUse[]): string =>
  uses.map(({ column, count }) => `${count} of ${column}`).join(', ')
