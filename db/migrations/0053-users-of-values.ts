/** Which object a value was kept for: its deletion, and no other of the same name, releases the value. */
import { type Kysely, sql } from 'kysely'

export async function up(db: Kysely<unknown>): Promise<void> {
  // Empty for rows of earlier releases, which stay until their holder releases them.
  await sql`alter table host_use add column uid text not null default ''`.execute(db)
}
