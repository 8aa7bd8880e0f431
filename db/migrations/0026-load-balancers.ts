/** Load balancers of accounts, and the certificates that were given to them. */
import { type Kysely, sql } from 'kysely'

export async function up(db: Kysely<unknown>): Promise<void> {
  for (const statement of STATEMENTS) await sql.raw(statement).execute(db)
}

const STATEMENTS = [
  `create table load_balancer (
     account_id uuid not null references account (id) on delete cascade,
     id text not null,
     zone text not null,
     name text not null,
     network_id text not null,
     primary key (account_id, id),
     constraint load_balancer_name unique (account_id, zone, name)
   )`,
  'create index load_balancer_network on load_balancer (account_id, network_id)',
  // The key is sealed for its own row. The load balancer names those that count in its spec.
  `create table load_balancer_certificate (
     account_id uuid not null,
     load_balancer_id text not null,
     id text not null,
     certificate text not null,
     sealed_key text not null,
     created_at timestamptz not null,
     primary key (account_id, load_balancer_id, id),
     foreign key (account_id, load_balancer_id) references load_balancer (account_id, id) on delete cascade
   )`,
]
