import { sql } from 'kysely'
import type { Database } from '../db/kit/open.ts'

/** How many transactions of this database wait for another one. */
export async function lockWaits(db: Database): Promise<number> {
  const { rows } = await sql<{ count: number }>`
    select count(*)::int as count from pg_stat_activity
    where wait_event_type = 'Lock' and datname = current_database()`.execute(db)
  return rows[0]?.count ?? 0
}
