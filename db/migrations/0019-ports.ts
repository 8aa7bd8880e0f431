/** Servers in private networks, and floating IPs. */
import { type Kysely, sql } from 'kysely'

export async function up(db: Kysely<unknown>): Promise<void> {
  for (const statement of STATEMENTS) await sql.raw(statement).execute(db)
}

const STATEMENTS = [
  // An interface that is leaving keeps its addresses until the guest has released it.
  `create table network_interface (
     id uuid primary key,
     account_id uuid not null references account (id) on delete cascade,
     server_id text not null,
     network_id text not null,
     network_uid text not null,
     slot integer not null check (slot between 1 and 7),
     mac_address text not null unique,
     ipv4_address text not null,
     ipv6_address text not null,
     is_leaving boolean not null default false,
     created_at timestamptz not null,
     constraint network_interface_network unique (account_id, server_id, network_id),
     constraint network_interface_slot unique (account_id, server_id, slot),
     constraint network_interface_ipv4 unique (account_id, network_id, ipv4_address),
     constraint network_interface_ipv6 unique (account_id, network_id, ipv6_address),
     foreign key (account_id, network_id) references network (account_id, id)
   )`,
  // Its address is in public_address. Without a server it leads nowhere; without a network, to the server's public
  // address.
  `create table floating_ip (
     account_id uuid not null references account (id) on delete cascade,
     id text not null,
     zone text not null,
     server_id text,
     network_id text,
     primary key (account_id, id),
     check (network_id is null or server_id is not null)
   )`,
  'create index floating_ip_server on floating_ip (account_id, server_id)',
  'create index floating_ip_network on floating_ip (account_id, network_id)',
]
