/** Playgrounds: one at a time of each account, remembered when they have ended. */
import { type Kysely, sql } from 'kysely'

export async function up(db: Kysely<unknown>): Promise<void> {
  for (const statement of STATEMENTS) await sql.raw(statement).execute(db)
}

const STATEMENTS = [
  `create table playground (
     account_id uuid not null references account (id) on delete cascade,
     id text not null,
     name text not null unique,
     region text not null,
     control_plane_id uuid not null,
     release text not null,
     app_domain text not null,
     endpoint text,
     certificate_authority text,
     created_at timestamptz not null,
     expires_at timestamptz not null,
     ready_at timestamptz,
     ended_at timestamptz,
     deleted_at timestamptz,
     end_reason text,
     failure_reason text,
     primary key (account_id, id)
   )`,
  'create unique index playground_live on playground (account_id) where deleted_at is null',
  'create index playground_newest on playground (account_id, created_at desc, id desc)',
]
