/** Registration of Kubernetes clusters in the organisation platform: its states, and when to retry one that the
 *  platform did not answer. */

export const REGISTRATION_STATES = ['pending', 'unlinked', 'registered', 'failed', 'deregistered'] as const

const MINUTE_MILLISECONDS = 60_000
const DOUBLINGS_MAXIMUM = 6

/** A minute after the first attempt, twice as long after each further one, an hour at most. */
export const nextAttemptAt = (attempts: number, now: Date): Date =>
  new Date(
    now.getTime() + Math.min(60, 2 ** Math.min(Math.max(attempts, 1) - 1, DOUBLINGS_MAXIMUM)) * MINUTE_MILLISECONDS,
  )

/** How long the deletion of a registered cluster waits for the platform to unregister it. */
const DEREGISTRATION_MILLISECONDS = 10 * MINUTE_MILLISECONDS
export const isDeregistrationGivenUp = (deletedAt: string | undefined, now: Date): boolean =>
  deletedAt !== undefined && now.getTime() - Date.parse(deletedAt) >= DEREGISTRATION_MILLISECONDS
