/** What keeps a storage, and where its data lie: snapshots of it, and copies that are made of it. */
import { type Kysely, sql } from 'kysely'

export async function up(db: Kysely<unknown>): Promise<void> {
  for (const statement of STATEMENTS) await sql.raw(statement).execute(db)
}

const STATEMENTS = [
  `create table storage_hold (
     account_id uuid not null references account (id) on delete cascade,
     holder text not null,
     storage_id text not null,
     server_id text,
     is_shared boolean not null,
     primary key (account_id, holder)
   )`,
  'create index storage_hold_storage on storage_hold (account_id, storage_id)',
]
