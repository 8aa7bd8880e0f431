/** How old a store may be that is put back. What was removed is remembered for longer than that, by PostgreSQL and by
 *  each host, so that nothing of it is made or started again for an object of then. */
export const STORE_AGE_MAXIMUM_DAYS = 90

const DAY_MILLISECONDS = 24 * 3_600_000
/** Noticed late, by clocks that differ. */
const MARGIN_DAYS = 7

/** What was removed before this may be forgotten. */
export const forgettableBefore = (now: Date): Date =>
  new Date(now.getTime() - (STORE_AGE_MAXIMUM_DAYS + MARGIN_DAYS) * DAY_MILLISECONDS)
