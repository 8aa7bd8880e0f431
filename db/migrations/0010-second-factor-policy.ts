/** A session remembers whether a second factor was proven in it, and an account since when it asks for one: sessions
 *  that
 *  were open in it then keep running, later ones must have met the policy. */
import { type Kysely, sql } from 'kysely'

export async function up(db: Kysely<unknown>): Promise<void> {
  for (const statement of STATEMENTS) await sql.raw(statement).execute(db)
}

const STATEMENTS = [
  'alter table session add column has_second_factor boolean not null default false',
  'alter table account add column second_factor_required_since timestamptz',
  'update account set second_factor_required_since = now() where requires_second_factor',
]
