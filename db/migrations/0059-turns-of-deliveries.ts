/** What is due is found by webhook, in its order, without what waits behind another delivery of its resource: that has
 *  no time of its next attempt. Deliveries in progress are found without those that only wait. */
import type { Kysely } from 'kysely'
import { createIndexes } from '../kit/create-indexes.ts'

export const isResumable = true

export const up = (db: Kysely<unknown>): Promise<void> => createIndexes(db, INDEXES)

const INDEXES = {
  webhook_delivery_in_order: `webhook_delivery (account_id, webhook_id, number)
    where state = 'pending' and next_attempt_at is not null`,
  webhook_delivery_leased: `webhook_delivery (account_id, webhook_id)
    where state = 'pending' and leased_until is not null`,
}
