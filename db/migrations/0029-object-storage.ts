/** Object storage of accounts: one in each zone, with its one key. */
import { type Kysely, sql } from 'kysely'

export async function up(db: Kysely<unknown>): Promise<void> {
  for (const statement of STATEMENTS) await sql.raw(statement).execute(db)
}

const STATEMENTS = [
  // The secret is sealed for its own row. Prefixes keep the buckets of all accounts apart, whatever their zone.
  `create table object_storage (
     account_id uuid not null references account (id) on delete cascade,
     id text not null,
     zone text not null,
     access_key_id text not null constraint object_storage_key unique,
     sealed_secret text not null,
     bucket_prefix text not null constraint object_storage_prefix unique,
     used_bytes bigint not null default 0,
     object_count bigint not null default 0,
     usage_measured_at timestamptz,
     generation bigint not null default 1,
     created_at timestamptz not null,
     primary key (account_id, id),
     constraint object_storage_zone unique (account_id, zone)
   )`,
]
