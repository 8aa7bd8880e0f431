/** What is sold at which price, and for which hours each resource costs. */
import { type Kysely, sql } from 'kysely'

export async function up(db: Kysely<unknown>): Promise<void> {
  for (const statement of STATEMENTS) await sql.raw(statement).execute(db)
}

const STATEMENTS = [
  // Of one unit and month. What is metered at some instant costs what the newest row before it says; rows are added.
  `create table price (
     resource_type text not null,
     plan text not null,
     valid_from timestamptz not null,
     unit_millicents bigint not null check (unit_millicents >= 0),
     primary key (resource_type, plan, valid_from)
   )`,
  `create table billed_resource (
     id bigint generated always as identity primary key,
     account_id uuid not null,
     resource_type text not null,
     uid text not null,
     resource_id text not null,
     name text not null,
     unique (resource_type, uid)
   )`,
  `create index billed_resource_account on billed_resource (account_id)`,
  // How long it was of one plan and size. Hours before first_hour belong to the life before, those before metered_until
  // have been looked at.
  `create table billed_life (
     id bigint generated always as identity primary key,
     resource bigint not null references billed_resource (id),
     account_id uuid not null,
     plan text not null,
     quantity bigint not null check (quantity >= 0),
     since timestamptz not null,
     until timestamptz,
     metered_until timestamptz not null
   )`,
  `create unique index billed_life_open on billed_life (resource) where until is null`,
  `create index billed_life_resource on billed_life (resource)`,
  `create index billed_life_account_open on billed_life (account_id) where until is null`,
  `create index billed_life_due on billed_life (metered_until) where until is null or metered_until < until`,
  `create table usage_hour (
     resource bigint not null,
     hour timestamptz not null,
     life bigint not null,
     monthly_cents bigint not null,
     primary key (resource, hour)
   )`,
  // The sums of usage_hour, written with it.
  `create table usage_day (
     account_id uuid not null,
     date date not null,
     life bigint not null,
     monthly_cents bigint not null,
     resource bigint not null,
     first_hour smallint not null,
     hours smallint not null check (hours between 0 and 24),
     primary key (account_id, date, life, monthly_cents)
   )`,
  `create index usage_day_date on usage_day (date, account_id)`,
  `create table metering (
     is_only boolean primary key default true check (is_only),
     looked_at timestamptz,
     metered_through timestamptz,
     closed_until timestamptz not null default '1970-01-01T00:00:00Z'
   )`,
  `insert into metering default values`,
]
