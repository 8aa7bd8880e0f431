/** When failed tasks are retried: after a minute, then at growing intervals, at least every hour. */
import { type RawBuilder, sql } from 'kysely'

const RETRY_MILLISECONDS = 60_000
const RETRY_MILLISECONDS_MAXIMUM = 3_600_000
const ERROR_LENGTH_MAXIMUM = 1_000

/** The columns to set for a task with a failed attempt: its table has `attempts`, `last_error` and
 *  `next_attempt_at`. */
export const afterFailure = (now: Date, error: unknown): RawBuilder<unknown> => {
  const text = (error instanceof Error ? error.message : String(error)).slice(0, ERROR_LENGTH_MAXIMUM)
  return sql`attempts = attempts + 1, last_error = ${text},
    next_attempt_at = ${now}::timestamptz + interval '1 millisecond'
      * least(${RETRY_MILLISECONDS_MAXIMUM}, ${RETRY_MILLISECONDS} * power(2, least(attempts, 20)))`
}
