/** Pools of public addresses, and who has which. */
import { type Kysely, sql } from 'kysely'

export async function up(db: Kysely<unknown>): Promise<void> {
  for (const statement of STATEMENTS) await sql.raw(statement).execute(db)
}

const STATEMENTS = [
  // A mirror of the PublicPool objects. Numbers from next_index on were never handed out.
  `create table public_pool (
     id text primary key,
     zone text not null,
     family text not null,
     cidr cidr not null,
     use text not null,
     gateway text,
     state text not null,
     total bigint not null,
     next_index bigint not null default 0 check (next_index <= total),
     constraint public_pool_overlap exclude using gist (cidr inet_ops with &&)
   )`,
  `create index public_pool_zone on public_pool (zone, use)`,
  // Counts releases, so that what rests longest is known.
  `create sequence public_address_release`,
  // Every address and prefix that was ever handed out. Without a holder it is free; one that is not current was
  // replaced, and still points to its holder.
  `create table public_address (
     pool_id text not null references public_pool (id),
     index bigint not null,
     use text not null,
     address text not null unique,
     account_id uuid,
     holder text,
     is_current boolean not null,
     released_number bigint,
     primary key (pool_id, index),
     check ((account_id is null) = (holder is null) and (holder is not null or not is_current))
   )`,
  `create index public_address_holder on public_address (account_id, holder)`,
  `create unique index public_address_current on public_address (account_id, holder, use) where is_current`,
  `create index public_address_free on public_address (pool_id, released_number) where holder is null`,
]
