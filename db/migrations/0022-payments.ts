/** What the payment processor knows of accounts and invoices, and what it has told. */
import { type Kysely, sql } from 'kysely'

export async function up(db: Kysely<unknown>): Promise<void> {
  for (const statement of STATEMENTS) await sql.raw(statement).execute(db)
}

const STATEMENTS = [
  // As it was when it was last read from the processor.
  `create table payment_customer (
     account_id uuid primary key,
     customer_id text not null unique,
     default_method_id text,
     default_method_expires_at timestamptz,
     created_at timestamptz not null
   )`,
  `alter table invoice add column processor_id text unique`,
  `alter table invoice add column overdue_since timestamptz`,
  `alter table invoice add constraint invoice_overdue
     check ((payment_status = 'overdue') = (overdue_since is not null))`,
  `create index invoice_overdue_account on invoice (account_id, overdue_since) where overdue_since is not null`,
  // Invoices on their way to the processor; gone when it charges them. The key of the requests changes with the
  // generation: after an answer that the processor would repeat, and before it forgets the key.
  `create table invoice_push (
     invoice_id uuid primary key references invoice (id),
     key_generation integer not null default 0,
     key_since timestamptz,
     attempts integer not null default 0,
     next_attempt_at timestamptz not null,
     last_error text
   )`,
  `create index invoice_push_due on invoice_push (next_attempt_at)`,
  `insert into invoice_push (invoice_id, next_attempt_at)
     select id, created_at from invoice where payment_status = 'unbilled' and total_cents > credit_applied_cents`,
  `create table payment_event (
     id text primary key,
     type text not null,
     processor_invoice_id text,
     customer_id text,
     received_at timestamptz not null,
     processed_at timestamptz,
     attempts integer not null default 0,
     next_attempt_at timestamptz not null,
     last_error text
   )`,
  `create index payment_event_due on payment_event (next_attempt_at) where processed_at is null`,
  `create index payment_event_processed on payment_event (processed_at) where processed_at is not null`,
  // What the last comparison of the ledger with the processor found.
  `create table payment_comparison (
     is_only boolean primary key default true check (is_only),
     compared_at timestamptz,
     due_at timestamptz not null default '1970-01-01T00:00:00Z'
   )`,
  `insert into payment_comparison default values`,
  `create table payment_difference (
     subject text not null,
     kind text not null,
     detail text not null,
     found_at timestamptz not null,
     primary key (subject, kind)
   )`,
]
