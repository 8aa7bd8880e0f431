import { type Kysely, sql } from 'kysely'

/** Builds the indexes, by name, while others write to their tables: for resumable migrations. One that a killed process
 *  has left unfinished is built anew. `unique` is for an index that refuses a second row. */
export async function createIndexes(
  db: Kysely<unknown>,
  indexes: Readonly<Record<string, string>>,
  { isUnique = false }: { readonly isUnique?: boolean } = {},
): Promise<void> {
  for (const [name, definition] of Object.entries(indexes)) {
    const { rows } = await sql`select from pg_index
      where indexrelid = to_regclass(${name}) and not indisvalid`.execute(db)
    if (rows.length > 0) await sql.raw(`drop index concurrently if exists ${name}`).execute(db)
    const kind = isUnique ? 'unique index' : 'index'
    await sql.raw(`create ${kind} concurrently if not exists ${name} on ${definition}`).execute(db)
  }
}
