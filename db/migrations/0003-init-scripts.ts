/** Init scripts. */
import { type Kysely, sql } from 'kysely'

export async function up(db: Kysely<unknown>): Promise<void> {
  for (const statement of STATEMENTS) await sql.raw(statement).execute(db)
}

const STATEMENTS = [
  `create table init_script (
     id uuid primary key,
     account_id uuid not null references account (id) on delete cascade,
     name text not null,
     content text not null,
     generation bigint not null,
     created_at timestamptz not null,
     updated_at timestamptz not null,
     unique (account_id, name)
   )`,
  `create index init_script_newest on init_script (account_id, created_at desc, id desc)`,
]
