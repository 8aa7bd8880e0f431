/** Keys of accounts' backups, sealed. */
import { type Kysely, sql } from 'kysely'

export async function up(db: Kysely<unknown>): Promise<void> {
  await sql
    .raw(
      `create table backup_key (
         account_id uuid primary key references account (id) on delete cascade,
         sealed_key text not null,
         created_at timestamptz not null
       )`,
    )
    .execute(db)
}
