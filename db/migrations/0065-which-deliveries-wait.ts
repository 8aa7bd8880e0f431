/** What waits behind another delivery of its resource, and what is a test. Processes of the release before know
 *  both from other columns. */
import { type Kysely, sql } from 'kysely'

export async function up(db: Kysely<unknown>): Promise<void> {
  await sql
    .raw(
      `alter table webhook_delivery add column is_behind boolean not null default false,
         add column is_test boolean not null default false`,
    )
    .execute(db)
}
