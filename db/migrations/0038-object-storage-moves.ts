/** Object storage moves from the single host to the gateway: how far that is, and since when it is over. */
import { type Kysely, sql } from 'kysely'

export async function up(db: Kysely<unknown>): Promise<void> {
  await sql`alter table object_storage add column move jsonb, add column moved_at timestamptz`.execute(db)
}
