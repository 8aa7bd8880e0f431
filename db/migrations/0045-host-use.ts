/** Names and addresses that an object uses although its claims are missing: nobody else gets them. */
import { type Kysely, sql } from 'kysely'

export async function up(db: Kysely<unknown>): Promise<void> {
  // Kinds, scopes and values of claims; public addresses are of the kind address, those in private networks of the kind
  // network, whose scope is the network.
  await sql`create table host_use (
     kind text not null,
     scope text not null,
     value text not null,
     account_id uuid not null,
     holder text not null,
     seen_at timestamptz not null,
     primary key (kind, scope, value)
   )`.execute(db)
  await sql`create index host_use_holder on host_use (account_id, holder)`.execute(db)
}
