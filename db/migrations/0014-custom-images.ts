/** Custom images have a separate quota: existing accounts get what new ones do. */
import { type Kysely, sql } from 'kysely'

export async function up(db: Kysely<unknown>): Promise<void> {
  await sql`
    insert into account_quota (account_id, name, "limit") select id, 'custom_images', 20 from account
    on conflict do nothing
  `.execute(db)
}
