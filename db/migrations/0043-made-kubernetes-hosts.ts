/** Hosts of control planes that the platform makes itself: how it speaks to them, and whether it does. */
import { type Kysely, sql } from 'kysely'

export async function up(db: Kysely<unknown>): Promise<void> {
  await sql`alter table kubernetes_host
     add column authority text,
     add column sealed_secrets text,
     add column url text,
     add column registered_at timestamptz,
     add constraint kubernetes_host_secrets check ((authority is null) = (sealed_secrets is null)),
     add constraint kubernetes_host_registered check (
       (url is null) = (registered_at is null) and (url is null or sealed_secrets is not null)
     )`.execute(db)
}
