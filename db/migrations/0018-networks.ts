/** Private networks of accounts, their routers, and which network is at which router. */
import { type Kysely, sql } from 'kysely'

export async function up(db: Kysely<unknown>): Promise<void> {
  for (const statement of STATEMENTS) await sql.raw(statement).execute(db)
}

const STATEMENTS = [
  // One that is ending takes nothing new.
  `create table network (
     account_id uuid not null references account (id) on delete cascade,
     id text not null,
     zone text not null,
     name text not null,
     ipv4_cidr cidr not null,
     ipv6_prefix cidr not null unique,
     is_ending boolean not null default false,
     primary key (account_id, id),
     constraint network_name unique (account_id, zone, name)
   )`,
  `create table router (
     account_id uuid not null references account (id) on delete cascade,
     id text not null,
     zone text not null,
     name text not null,
     nat_enabled boolean not null,
     is_ending boolean not null default false,
     primary key (account_id, id),
     constraint router_name unique (account_id, zone, name)
   )`,
  // A network is at one router.
  `create table router_network (
     account_id uuid not null references account (id) on delete cascade,
     network_id text not null,
     router_id text not null,
     is_ending boolean not null default false,
     primary key (account_id, network_id),
     foreign key (account_id, network_id) references network (account_id, id),
     foreign key (account_id, router_id) references router (account_id, id)
   )`,
  `create index router_network_router on router_network (account_id, router_id)`,
]
