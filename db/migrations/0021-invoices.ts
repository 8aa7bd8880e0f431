/** Invoices, what they took of credits, and the accounts that wait for theirs. */
import { type Kysely, sql } from 'kysely'

export async function up(db: Kysely<unknown>): Promise<void> {
  for (const statement of STATEMENTS) await sql.raw(statement).execute(db)
}

const STATEMENTS = [
  `create table invoice (
     id uuid primary key,
     account_id uuid not null,
     period text not null,
     period_start timestamptz not null,
     period_end timestamptz not null,
     currency text not null,
     total_cents bigint not null check (total_cents >= 0),
     credit_applied_cents bigint not null check (credit_applied_cents between 0 and total_cents),
     payment_status text not null check (payment_status in ('unbilled', 'open', 'paid', 'overdue')),
     hosted_invoice_url text,
     created_at timestamptz not null,
     unique (account_id, period)
   )`,
  `create table invoice_line (
     invoice_id uuid not null references invoice (id),
     position integer not null,
     kind text not null check (kind in ('usage', 'credit')),
     resource_type text not null,
     resource_id text not null,
     name text not null,
     plan text not null,
     hours integer not null,
     amount_cents bigint not null check ((kind = 'credit') = (amount_cents < 0)),
     cap_cents bigint not null,
     primary key (invoice_id, position)
   )`,
  // The ledger: what a credit has left is what was given minus these.
  `create table credit_application (
     invoice_id uuid not null references invoice (id),
     credit_id uuid not null references credit (id),
     amount_cents bigint not null check (amount_cents > 0),
     primary key (invoice_id, credit_id)
   )`,
  `create index credit_application_credit on credit_application (credit_id)`,
  `create table invoice_run (
     period text primary key,
     account_count integer not null,
     started_at timestamptz not null,
     finished_at timestamptz
   )`,
  // Who has no invoice of the run yet; gone in the transaction that writes it.
  `create table invoice_task (
     period text not null references invoice_run (period),
     account_id uuid not null,
     attempts integer not null default 0,
     next_attempt_at timestamptz not null,
     last_error text,
     primary key (period, account_id)
   )`,
  `create index invoice_task_due on invoice_task (period, next_attempt_at, account_id)`,
]
