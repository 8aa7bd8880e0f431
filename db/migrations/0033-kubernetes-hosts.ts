/** Hosts of control planes, one in each region: what the platform calls them, and since when it knows them. */
import { type Kysely, sql } from 'kysely'

export async function up(db: Kysely<unknown>): Promise<void> {
  await sql`create table kubernetes_host (
     region text primary key,
     id uuid not null unique,
     created_at timestamptz not null
   )`.execute(db)
}
