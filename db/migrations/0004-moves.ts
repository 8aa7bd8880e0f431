/** The second place of a server that is on its way to another node. */
import { type Kysely, sql } from 'kysely'

export async function up(db: Kysely<unknown>): Promise<void> {
  for (const statement of STATEMENTS) await sql.raw(statement).execute(db)
}

const STATEMENTS = [
  `create table placement_target (
     account_id uuid not null,
     server_id text not null,
     operation_id text not null,
     zone text not null,
     node text not null references node_capacity (node),
     reserved_at timestamptz not null,
     primary key (account_id, server_id),
     foreign key (account_id, server_id) references placement (account_id, server_id) on delete restrict
   )`,
  `create index placement_target_node on placement_target (node)`,
]
