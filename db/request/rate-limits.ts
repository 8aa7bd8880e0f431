/** Rate-limit windows shared by all replicas: one atomic statement counts a request. */
import { sql } from 'kysely'
import type { Queries } from '../kit/open.ts'

export interface RateWindow {
  readonly requestsMaximum: number
  readonly windowSeconds: number
}

/** Counts a request of `key`. Returns the whole seconds until another request is allowed; 0 when this one is. */
export async function countRequest(queries: Queries, key: string, window: RateWindow, now: Date): Promise<number> {
  const nowMilliseconds = now.getTime()
  const ends = nowMilliseconds + window.windowSeconds * 1000
  const isOver = sql`rate_limit.expire <= ${nowMilliseconds}`
  const counted = await queries
    .insertInto('rate_limit')
    .values({ key, points: 1, expire: ends })
    .onConflict((conflict) =>
      conflict.column('key').doUpdateSet({
        points: sql<number>`case when ${isOver} then 1 else least(rate_limit.points + 1, 1000000) end`,
        expire: sql<number>`case when ${isOver} then ${ends}::bigint else rate_limit.expire end`,
      }),
    )
    .returning(['points', 'expire'])
    .executeTakeFirstOrThrow()
  return counted.points <= window.requestsMaximum
    ? 0
    : Math.max(1, Math.ceil(((counted.expire ?? ends) - nowMilliseconds) / 1000))
}

/** Deletes expired windows. */
export async function forgetOldRequests(queries: Queries, now: Date): Promise<void> {
  await queries.deleteFrom('rate_limit').where('expire', '<', now.getTime()).execute()
}
