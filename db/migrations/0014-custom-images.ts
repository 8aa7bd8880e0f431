/** Custom images have a quota of their own: accounts that are there get what new ones do. */
import { type Kysely, sql } from 'kysely'

export async function up(db: Kysely<unknown>): Promise<void> {
  await sql`
    insert into account_quota (account_id, name, "limit") select id, 'custom_images', 20 from account
    on conflict do nothing
  `.execute(db)
}
