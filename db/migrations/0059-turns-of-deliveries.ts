/** What is due is found by webhook, in its order, without what waits behind another delivery of its resource: that has
 *  no time of its next attempt. Deliveries in progress are found without those that only wait. */
import { type Kysely, sql } from 'kysely'

export async function up(db: Kysely<unknown>): Promise<void> {
  for (const statement of STATEMENTS) await sql.raw(statement).execute(db)
}

const STATEMENTS = [
  `create index webhook_delivery_in_order on webhook_delivery (account_id, webhook_id, number)
     where state = 'pending' and next_attempt_at is not null`,
  `create index webhook_delivery_leased on webhook_delivery (account_id, webhook_id)
     where state = 'pending' and leased_until is not null`,
]
