/** Webhooks, the events that they select, and what came of sending each of them. Events are found from the audit log
 *  and from operations that have ended: `webhook_account` has how far an account's log was read,
 *  `webhook_ended_operation` the operations that were not read yet. */
import { type Kysely, sql } from 'kysely'

export async function up(db: Kysely<unknown>): Promise<void> {
  for (const statement of STATEMENTS) await sql.raw(statement).execute(db)
}

const STATEMENTS = [
  `insert into account_quota (account_id, name, "limit") select id, 'webhooks', 10 from account
     on conflict do nothing`,
  `create table webhook_account (
     account_id uuid primary key references account (id) on delete cascade,
     audit_sequence bigint not null,
     standing text,
     has_states boolean not null default false
   )`,
  `create table webhook (
     account_id uuid not null references account (id) on delete cascade,
     id text not null,
     name text not null,
     url text not null,
     events text[] not null,
     enabled boolean not null,
     created_at timestamptz not null,
     sealed_secret text,
     sealed_previous_secret text,
     previous_secret_until timestamptz,
     failing_since timestamptz,
     paused_at timestamptz,
     pause_reason text,
     delivered_at timestamptz,
     primary key (account_id, id)
   )`,
  'create index webhook_newest on webhook (account_id, created_at desc, id desc)',
  `create table webhook_ended_operation (
     number bigint generated always as identity primary key,
     account_id uuid not null references account (id) on delete cascade,
     operation_id uuid not null
   )`,
  'create index webhook_ended_operation_of_account on webhook_ended_operation (account_id, number)',
  `create table webhook_state (
     account_id uuid not null references account (id) on delete cascade,
     resource_type text not null,
     resource_id text not null,
     state text not null,
     primary key (account_id, resource_type, resource_id)
   )`,
  `create table webhook_event (
     account_id uuid not null references account (id) on delete cascade,
     id text not null,
     number bigint generated always as identity,
     type text not null,
     resource_type text,
     resource_id text,
     body text not null,
     primary key (account_id, id)
   )`,
  `create table webhook_delivery (
     account_id uuid not null,
     webhook_id text not null,
     event_id text not null,
     number bigint not null,
     resource text not null,
     state text not null check (state in ('pending', 'delivered', 'failed')),
     attempts bigint not null default 0,
     failures bigint not null default 0,
     created_at timestamptz not null,
     next_attempt_at timestamptz,
     leased_until timestamptz,
     attempted_at timestamptz,
     ended_at timestamptz,
     response_status bigint,
     error text,
     primary key (account_id, webhook_id, event_id),
     foreign key (account_id, webhook_id) references webhook (account_id, id) on delete cascade,
     foreign key (account_id, event_id) references webhook_event (account_id, id)
   )`,
  // The next of each resource, what is due, and the log.
  `create index webhook_delivery_pending on webhook_delivery (account_id, webhook_id, resource, number)
     where state = 'pending'`,
  `create index webhook_delivery_due on webhook_delivery (next_attempt_at) where state = 'pending'`,
  `create index webhook_delivery_ended on webhook_delivery (account_id, webhook_id, ended_at desc)
     where state <> 'pending'`,
  `create index webhook_delivery_newest on webhook_delivery (account_id, webhook_id, number desc)`,
  `create index webhook_delivery_of_event on webhook_delivery (account_id, event_id)`,
]
