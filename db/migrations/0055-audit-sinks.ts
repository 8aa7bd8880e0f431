/** Audit sinks: where the audit log of an account is pushed to, how far that has come, and the batch that was begun. */
import { type Kysely, sql } from 'kysely'

export async function up(db: Kysely<unknown>): Promise<void> {
  for (const statement of STATEMENTS) await sql.raw(statement).execute(db)
}

const STATEMENTS = [
  `insert into account_quota (account_id, name, "limit") select id, 'audit_sinks', 5 from account
     on conflict do nothing`,
  `create table audit_sink (
     account_id uuid not null references account (id) on delete cascade,
     id uuid not null,
     name text not null,
     type text not null check (type in ('https', 's3')),
     url text not null,
     bucket text,
     prefix text,
     region text,
     access_key_id text,
     sealed_access_key text,
     sealed_secret text not null,
     enabled boolean not null,
     generation bigint not null,
     created_at timestamptz not null,
     sent_sequence bigint not null,
     batch_through bigint,
     skipped_entries bigint not null default 0,
     failures bigint not null default 0,
     failing_since timestamptz,
     noticed_at timestamptz,
     error text,
     response_status bigint,
     next_attempt_at timestamptz not null,
     leased_until timestamptz,
     sent_at timestamptz,
     primary key (account_id, id),
     unique (account_id, name)
   )`,
  'create index audit_sink_newest on audit_sink (account_id, created_at desc, id desc)',
]
