/** Separate storages: where the data lies, whose guest has the disk, and the room that attached disks take where their
 *  server is. */
import { type Kysely, sql } from 'kysely'

export async function up(db: Kysely<unknown>): Promise<void> {
  for (const statement of STATEMENTS) await sql.raw(statement).execute(db)
}

const STATEMENTS = [
  'alter table placement add column attached_gibibytes bigint not null default 0',
  `create table storage_claim (
     account_id uuid not null references account (id) on delete cascade,
     storage_id text not null,
     zone text not null,
     size_gibibytes bigint not null,
     phase text not null check (phase in ('detached', 'arriving', 'attached', 'leaving')),
     node text,
     server_id text,
     volume text,
     slot integer,
     has_room boolean not null default true,
     is_forced boolean not null default false,
     claimed_at timestamptz not null,
     primary key (account_id, storage_id),
     unique (account_id, server_id, slot),
     check ((phase = 'attached') = (node is null)),
     check ((phase = 'detached') = (server_id is null)),
     check ((server_id is null) = (slot is null))
   )`,
  'create index storage_claim_node on storage_claim (node)',
]
