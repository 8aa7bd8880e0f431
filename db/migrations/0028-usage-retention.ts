/** Old hour rows are found by their hour. Rows are made in its order, so that a few bytes for each range of them do. */
import { type Kysely, sql } from 'kysely'

export const up = async (db: Kysely<unknown>): Promise<void> => {
  await sql`create index usage_hour_hour on usage_hour using brin (hour)`.execute(db)
}
