/** Which nodes reach the store of their zone's backups: what is made from a backup is made there. */
import { type Kysely, sql } from 'kysely'

export async function up(db: Kysely<unknown>): Promise<void> {
  await sql`alter table node_capacity add column has_backups boolean not null default false`.execute(db)
}
