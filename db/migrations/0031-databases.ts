/** Managed databases of accounts: their names, the networks that they keep, passwords and certificates; and who signs
 *  the certificates. */
import { type Kysely, sql } from 'kysely'

export async function up(db: Kysely<unknown>): Promise<void> {
  for (const statement of STATEMENTS) await sql.raw(statement).execute(db)
}

const STATEMENTS = [
  // One for the deployment: whoever is first makes it.
  `create table database_authority (
     id smallint primary key default 1 check (id = 1),
     certificate text not null,
     sealed_key text not null
   )`,
  // What is sealed is sealed for its own row.
  `create table database (
     account_id uuid not null references account (id) on delete cascade,
     id text not null,
     zone text not null,
     name text not null,
     network_id text not null,
     sealed_password text not null,
     password_generation bigint not null default 1,
     certificate text,
     sealed_key text,
     certificate_host text,
     certificate_expires_at timestamptz,
     generation bigint not null default 1,
     primary key (account_id, id),
     constraint database_name unique (account_id, name)
   )`,
  'create index database_network on database (account_id, network_id)',
]
