/** What is due is found by webhook, by time, without what waits behind another delivery of its resource. Tests are
 *  found for webhooks that are sent nothing else. What has ended, and what waits for long, is found by time. */
import { type Kysely, sql } from 'kysely'
import { createIndexes } from '../kit/create-indexes.ts'

export const isResumable = true

export async function up(db: Kysely<unknown>): Promise<void> {
  await createIndexes(db, INDEXES)
  // Of databases that had it before it was replaced.
  await sql.raw('drop index concurrently if exists webhook_delivery_in_order').execute(db)
  // As the account's first webhook was created.
  await sql
    .raw(
      `update webhook_account set created_at = first.created_at
         from (select account_id, min(created_at) as created_at from webhook group by account_id) first
         where first.account_id = webhook_account.account_id and first.created_at < webhook_account.created_at`,
    )
    .execute(db)
}

const INDEXES = {
  webhook_delivery_in_turn: `webhook_delivery (account_id, webhook_id, next_attempt_at, number)
    where state = 'pending' and not is_behind`,
  webhook_delivery_test: `webhook_delivery (account_id, webhook_id, next_attempt_at, number)
    where state = 'pending' and is_test`,
  webhook_delivery_end: `webhook_delivery (ended_at) where state <> 'pending'`,
  webhook_delivery_start: `webhook_delivery (created_at) where state = 'pending'`,
  webhook_event_test: `webhook_event (account_id, id) where type = 'webhook.test'`,
}
