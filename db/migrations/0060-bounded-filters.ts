/** Filters of the audit log and of operations read what they find, and not everything that there is. */
import type { Kysely } from 'kysely'
import { createIndexes } from '../kit/create-indexes.ts'

export const isResumable = true

export const up = (db: Kysely<unknown>): Promise<void> => createIndexes(db, INDEXES)

const INDEXES = {
  audit_entry_action: 'audit_entry (account_id, action, sequence desc)',
  // Where a time begins and ends in a chain.
  audit_entry_at: 'audit_entry (account_id, at)',
  operation_history_target: 'operation_history (account_id, target_type, target_id, created_at desc, id desc)',
}
