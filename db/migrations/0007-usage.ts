/** What guests move over networks and disks. */
import { type Kysely, sql } from 'kysely'

export async function up(db: Kysely<unknown>): Promise<void> {
  for (const statement of STATEMENTS) await sql.raw(statement).execute(db)
}

const COUNTERS = `
     network_received_bytes bigint not null default 0,
     network_transmitted_bytes bigint not null default 0,
     disk_read_bytes bigint not null default 0,
     disk_written_bytes bigint not null default 0,
     disk_read_operations bigint not null default 0,
     disk_write_operations bigint not null default 0`

const STATEMENTS = [
  // The newest reading of every guest's process: what came on top of it is added once, whoever reads it and how often.
  `create table usage_reading (
     epoch text primary key,
     seen_at timestamptz not null,${COUNTERS}
   )`,
  `create index usage_reading_seen on usage_reading (seen_at)`,
  `create table server_metric (
     server_uid uuid not null,
     step_seconds integer not null,
     at timestamptz not null,${COUNTERS},
     primary key (server_uid, step_seconds, at)
   )`,
  `create index server_metric_age on server_metric (step_seconds, at)`,
  // By day (UTC), kept for as long as invoices speak of it; deleted servers stay in it.
  `create table network_transfer (
     account_id uuid not null,
     date date not null,
     server_id text not null,
     server_name text not null,
     received_bytes bigint not null,
     transmitted_bytes bigint not null,
     primary key (account_id, date, server_id)
   )`,
]
