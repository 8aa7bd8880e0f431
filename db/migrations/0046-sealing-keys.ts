/** Which sealing keys open what the database holds: their ids, and a value that only the right key gives. */
import { type Kysely, sql } from 'kysely'

export async function up(db: Kysely<unknown>): Promise<void> {
  await sql`create table sealing_key (
     id text primary key,
     check_value text not null,
     state text not null check (state in ('in_use', 'lost')),
     made_at timestamptz not null
   )`.execute(db)
}
