/** Since when the events of an account are found: the state of a resource that was created later is an event, also when
 *  nobody has looked at the account before. */
import { type Kysely, sql } from 'kysely'

export async function up(db: Kysely<unknown>): Promise<void> {
  for (const statement of STATEMENTS) await sql.raw(statement).execute(db)
}

const STATEMENTS = [
  // The default is for processes of the version before, while they are replaced.
  'alter table webhook_account add column created_at timestamptz not null default now()',
  `update webhook_account set created_at = first.created_at
     from (select account_id, min(created_at) as created_at from webhook group by account_id) first
     where first.account_id = webhook_account.account_id`,
]
