/** The maximum age of a store that is restored. PostgreSQL and each host remember deletions for longer than that, so
 *  that nothing deleted is created or started again for an object of the restored store. */
export const STORE_AGE_MAXIMUM_DAYS = 90

const DAY_MILLISECONDS = 24 * 3_600_000
/** Margin for late detection, and for clocks that differ. */
const MARGIN_DAYS = 7

/** Deletions before this may be forgotten. */
export const forgettableBefore = (now: Date): Date =>
  new Date(now.getTime() - (STORE_AGE_MAXIMUM_DAYS + MARGIN_DAYS) * DAY_MILLISECONDS)
