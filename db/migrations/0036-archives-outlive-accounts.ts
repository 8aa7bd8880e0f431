/** The archive of a database outlives the account as well: only its row says which tenant of the object storage is to
 *  be taken away. */
import { type Kysely, sql } from 'kysely'

export async function up(db: Kysely<unknown>): Promise<void> {
  await sql`alter table database_archive drop constraint database_archive_account_id_fkey`.execute(db)
}
