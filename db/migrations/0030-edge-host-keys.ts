/** The key by which clients know the bastion of an edge: the same for every machine that is the bastion. */
import { type Kysely, sql } from 'kysely'

export async function up(db: Kysely<unknown>): Promise<void> {
  await sql
    .raw(
      `alter table edge
         add column host_key text,
         add column sealed_host_key text,
         add constraint edge_host_key check ((host_key is null) = (sealed_host_key is null))`,
    )
    .execute(db)
}
