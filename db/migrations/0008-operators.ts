/** What operators do is written down once, however often it is retried and whoever writes it. */
import { type Kysely, sql } from 'kysely'

export async function up(db: Kysely<unknown>): Promise<void> {
  for (const statement of STATEMENTS) await sql.raw(statement).execute(db)
}

const STATEMENTS = [
  `create unique index staff_audit_entry_once on staff_audit_entry ((body ->> 'request_id'), action, (body ->> ` +
    `'resource_id')) where body ->> 'request_id' <> ''`,
  `create index operation_history_newest on operation_history (created_at desc, id desc)`,
]
