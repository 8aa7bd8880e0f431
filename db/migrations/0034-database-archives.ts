/** Archives of managed databases: where each is and what opens it, also once its database is deleted. */
import { type Kysely, sql } from 'kysely'

export async function up(db: Kysely<unknown>): Promise<void> {
  // The secrets are sealed for their own row. There is no reference to the database: the archive outlives it.
  await sql`create table database_archive (
     account_id uuid not null references account (id) on delete cascade,
     id text not null,
     zone text not null,
     access_key_id text not null constraint database_archive_key unique,
     sealed_secret text not null,
     sealed_cipher_key text not null,
     bucket_prefix text not null constraint database_archive_prefix unique,
     origin jsonb,
     kept_until timestamptz,
     primary key (account_id, id)
   )`.execute(db)
}
