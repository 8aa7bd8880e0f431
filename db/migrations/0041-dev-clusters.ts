/** Dev clusters: their names. */
import { type Kysely, sql } from 'kysely'

export async function up(db: Kysely<unknown>): Promise<void> {
  await sql`create table dev_cluster (
     account_id uuid not null,
     id text not null,
     name text not null,
     primary key (account_id, id),
     constraint dev_cluster_name unique (account_id, name)
   )`.execute(db)
}
