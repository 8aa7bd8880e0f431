/** Which processes use the database, and which migrations they must know. */
import { type Kysely, sql } from 'kysely'

export async function up(db: Kysely<unknown>): Promise<void> {
  for (const statement of STATEMENTS) await sql.raw(statement).execute(db)
}

const STATEMENTS = [
  // The newest migration that a process must know to work with what this one left; null: the ones before it work too.
  'alter table kysely_migration add column needs varchar(255)',
  `create table process (
    id uuid primary key,
    component text not null,
    version text not null,
    level text not null,
    seen_at timestamptz not null
  )`,
]
