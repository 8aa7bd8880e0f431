/** Filters of the audit log and of operations read what they find, and not everything that there is. */
import { type Kysely, sql } from 'kysely'

export async function up(db: Kysely<unknown>): Promise<void> {
  for (const statement of STATEMENTS) await sql.raw(statement).execute(db)
}

const STATEMENTS = [
  `create index audit_entry_action on audit_entry (account_id, action, sequence desc)`,
  // Where a time begins and ends in a chain.
  `create index audit_entry_at on audit_entry (account_id, at)`,
  `create index operation_history_target
     on operation_history (account_id, target_type, target_id, created_at desc, id desc)`,
]
