/** Since when the events of an account are found: the state of a resource that was created later is an event, also when
 *  nobody has looked at the account before. */
import { type Kysely, sql } from 'kysely'

export async function up(db: Kysely<unknown>): Promise<void> {
  // The default is for processes of the version before, while they are replaced.
  await sql.raw('alter table webhook_account add column created_at timestamptz not null default now()').execute(db)
}
