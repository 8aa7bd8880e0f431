/** Network edges: which network has which, and where servers of the network find their way to the IPv4 Internet. */
import { type Kysely, sql } from 'kysely'

export async function up(db: Kysely<unknown>): Promise<void> {
  await sql
    .raw(
      `create table edge (
         account_id uuid not null references account (id) on delete cascade,
         id text not null,
         zone text not null,
         network_id text not null,
         gateway_ipv4 inet,
         gateway_ipv6 inet,
         primary key (account_id, id),
         constraint edge_network unique (account_id, network_id),
         foreign key (account_id, network_id) references network (account_id, id),
         constraint edge_gateway check ((gateway_ipv4 is null) = (gateway_ipv6 is null))
       )`,
    )
    .execute(db)
}
