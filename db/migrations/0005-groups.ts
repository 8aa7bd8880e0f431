/** Server groups, which server is in which, and changes of a server's size that are under way. */
import { type Kysely, sql } from 'kysely'

export async function up(db: Kysely<unknown>): Promise<void> {
  for (const statement of STATEMENTS) await sql.raw(statement).execute(db)
}

const STATEMENTS = [
  `create table server_group (
     account_id uuid not null,
     id text not null,
     name text not null,
     zone text,
     region text not null,
     spread text not null check (spread in ('host', 'rack', 'zone')),
     is_strict boolean not null,
     generation bigint not null,
     created_at timestamptz not null,
     primary key (account_id, id),
     unique (account_id, name)
   )`,
  `create index server_group_newest on server_group (account_id, created_at desc, id desc)`,
  // Membership is a claim like the room: it comes and goes with the server's row.
  `alter table placement add column group_id text,
     add foreign key (account_id, group_id) references server_group (account_id, id) on delete restrict`,
  `create index placement_group on placement (account_id, group_id) where group_id is not null`,
  // While it is there the server holds the larger of both sizes in every respect.
  `create table size_change (
     account_id uuid not null,
     server_id text not null,
     operation_id text not null,
     cores_before bigint not null,
     memory_mebibytes_before bigint not null,
     storage_gibibytes_before bigint not null,
     cores_after bigint not null,
     memory_mebibytes_after bigint not null,
     storage_gibibytes_after bigint not null,
     began_at timestamptz not null,
     primary key (account_id, server_id),
     foreign key (account_id, server_id) references placement (account_id, server_id) on delete cascade
   )`,
]
