/** Turns: who speaks to something outside of the database just now, so that no transaction has to wait for it. And
 *  answers that are kept for Idempotency-Keys have no secrets: those that were kept before lose them. */
import { type Kysely, sql } from 'kysely'

export async function up(db: Kysely<unknown>): Promise<void> {
  for (const statement of STATEMENTS) await sql.raw(statement).execute(db)
}

/** All routes that take keys and show a secret show it in this field. */
export const CLEAN_ANSWERS = `update idempotency_key set body = (body::jsonb - 'credentials')::text
  where body like '{%"credentials"%}'`

const STATEMENTS = [
  `create table turn (
     name text primary key,
     holder uuid not null,
     ends_at timestamptz not null
   )`,
  // Set before its store is emptied: nobody holds it from then on.
  'alter table database_archive add column is_ending boolean not null default false',
  CLEAN_ANSWERS,
]
