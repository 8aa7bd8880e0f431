/** Requests for hosts of one's own, and the nodes that were given to them. */
import { type Kysely, sql } from 'kysely'

export async function up(db: Kysely<unknown>): Promise<void> {
  for (const statement of STATEMENTS) await sql.raw(statement).execute(db)
}

const STATEMENTS = [
  `create table private_cloud_request (
     id uuid primary key,
     account_id uuid not null,
     state text not null check (state in ('open', 'in_review', 'fulfilled', 'declined', 'withdrawn')),
     vcpus integer not null,
     memory_gibibytes integer not null,
     disk_gigabytes integer not null,
     region text,
     notes text not null,
     staff_reason text,
     requested_by_email text not null,
     created_at timestamptz not null,
     updated_at timestamptz not null,
     decided_at timestamptz,
     check ((decided_at is null) = (state in ('open', 'in_review')))
   )`,
  // One at a time.
  `create unique index private_cloud_request_open on private_cloud_request (account_id)
     where state in ('open', 'in_review')`,
  `create index private_cloud_request_account on private_cloud_request (account_id, created_at desc, id desc)`,
  `create index private_cloud_request_list on private_cloud_request (created_at desc, id desc)`,
  // Placement keeps to it at once; the Node's object follows.
  `create table node_dedication (node text primary key, account_id uuid not null)`,
]
