/** Machines that the platform runs for a customer: those of one owner are kept apart, and share addresses. */
import { type Kysely, sql } from 'kysely'

export async function up(db: Kysely<unknown>): Promise<void> {
  for (const statement of STATEMENTS) await sql.raw(statement).execute(db)
}

const STATEMENTS = [
  // What the server is run for, as `edge:<id>`.
  `alter table placement add column managed_by text`,
  `create index placement_managed_by on placement (account_id, managed_by) where managed_by is not null`,
  // Of a private network: no server has it, machines of the holder move it among themselves.
  `create table shared_address (
     account_id uuid not null references account (id) on delete cascade,
     network_id text not null,
     holder text not null,
     ipv4_address text not null,
     ipv6_address text not null,
     primary key (account_id, network_id, holder),
     constraint shared_address_ipv4 unique (account_id, network_id, ipv4_address),
     constraint shared_address_ipv6 unique (account_id, network_id, ipv6_address),
     foreign key (account_id, network_id) references network (account_id, id)
   )`,
]
