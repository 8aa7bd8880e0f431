/** What the platform itself keeps in object storage: a tenant for each purpose and owner. */
import { type Kysely, sql } from 'kysely'

export async function up(db: Kysely<unknown>): Promise<void> {
  // Without references: only the row says which tenant of the object storage is to be taken away.
  await sql`create table internal_tenant (
     purpose text not null constraint internal_tenant_purpose check (purpose in ('backups', 'clusters', 'audit')),
     owner text not null,
     zone text not null,
     backend text not null constraint internal_tenant_backend check (backend in ('rgw', 'svc-s3-single')),
     access_key_id text not null constraint internal_tenant_key unique,
     sealed_secret text not null,
     bucket_prefix text not null constraint internal_tenant_prefix unique,
     created_at timestamptz not null,
     told_at timestamptz,
     primary key (purpose, owner, zone)
   )`.execute(db)
}
