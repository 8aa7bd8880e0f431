/** Deliveries in progress are found without those that only wait. */
import type { Kysely } from 'kysely'
import { createIndexes } from '../kit/create-indexes.ts'

export const isResumable = true

export const up = (db: Kysely<unknown>): Promise<void> => createIndexes(db, INDEXES)

const INDEXES = {
  webhook_delivery_leased: `webhook_delivery (account_id, webhook_id)
    where state = 'pending' and leased_until is not null`,
}
