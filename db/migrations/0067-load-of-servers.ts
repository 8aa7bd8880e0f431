/** Processor time and memory of servers. Null: not measured, or not yet. */
import { type Kysely, sql } from 'kysely'

export async function up(db: Kysely<unknown>): Promise<void> {
  for (const statement of STATEMENTS) await sql.raw(statement).execute(db)
}

const STATEMENTS = [
  'alter table usage_reading add column cpu_milliseconds bigint',
  'alter table server_metric add column cpu_milliseconds bigint, add column memory_used_bytes bigint',
]
