/** A webhook whose deletion was accepted sends nothing and is in no list. Its row stays until its object is deleted, so
 *  that a deletion that Kubernetes refuses loses nothing. */
import { type Kysely, sql } from 'kysely'

export async function up(db: Kysely<unknown>): Promise<void> {
  await sql.raw('alter table webhook add column removed_at timestamptz').execute(db)
}
