/** What keeps the objects of an account in a zone: the zone may have both. */
import { type Kysely, sql } from 'kysely'

export async function up(db: Kysely<unknown>): Promise<void> {
  for (const statement of STATEMENTS) await sql.raw(statement).execute(db)
}

const STATEMENTS = [
  // Whoever has it already has it on the one host that there was.
  `alter table object_storage
     add column backend text not null default 'svc-s3-single'
       constraint object_storage_backend check (backend in ('rgw', 'svc-s3-single'))`,
  'alter table object_storage alter column backend drop default',
]
