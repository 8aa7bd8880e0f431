/** Where a detached storage is brought by a separate move. Room is held for it there until its data have come. */
import { type Kysely, sql } from 'kysely'

export async function up(db: Kysely<unknown>): Promise<void> {
  await sql`
    alter table storage_claim
      add column target_node text,
      add constraint storage_claim_target check (target_node is null or phase = 'detached')
  `.execute(db)
  await sql`
    create index storage_claim_target_node on storage_claim (target_node) where target_node is not null
  `.execute(db)
}
