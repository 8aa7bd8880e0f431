/** The name of an SSH key can be changed: its ETag is of its generation. */
import { type Kysely, sql } from 'kysely'

export async function up(db: Kysely<unknown>): Promise<void> {
  await sql.raw('alter table ssh_key add column generation integer not null default 1').execute(db)
}
