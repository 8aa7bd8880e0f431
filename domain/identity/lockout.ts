/** Temporary lockouts after repeated failures. Each attempt is counted before it is judged, so that simultaneous
 *  attempts cannot share one count; a success resets everything. Never permanent: a stranger must not be able to lock
 *  someone out for good. */

export interface LockoutRule {
  /** Attempts in a window; the last of them locks unless it succeeds. */
  readonly failuresMaximum: number
  readonly windowSeconds: number
  readonly lockSeconds: number
  /** Each further lock lasts twice as long, up to this. */
  readonly lockSecondsMaximum: number
}

const QUARTER_HOUR_SECONDS = 900
const DAY_SECONDS = 86_400
export const EMAIL_LOCKOUT: LockoutRule = {
  failuresMaximum: 5,
  windowSeconds: QUARTER_HOUR_SECONDS,
  lockSeconds: QUARTER_HOUR_SECONDS,
  lockSecondsMaximum: DAY_SECONDS,
}
/** Many people may share one address, so the limit is higher. */
export const ADDRESS_LOCKOUT: LockoutRule = { ...EMAIL_LOCKOUT, failuresMaximum: 100 }
export const SECOND_FACTOR_LOCKOUT: LockoutRule = EMAIL_LOCKOUT

export interface LockoutState {
  readonly failures: number
  readonly windowStartedAt: Date
  readonly locks: number
  readonly lockedUntil: Date | null
}

export interface LockoutVerdict {
  /** Whole seconds until the next attempt is judged; 0 when this one may proceed. */
  readonly waitSeconds: number
  readonly state: LockoutState
}

/** Counts an attempt. A refused one (waitSeconds above 0) changes nothing. */
export function countAttempt(before: LockoutState | undefined, rule: LockoutRule, now: Date): LockoutVerdict {
  const state = before ?? { failures: 0, windowStartedAt: now, locks: 0, lockedUntil: null }
  const waitMilliseconds = (state.lockedUntil?.getTime() ?? 0) - now.getTime()
  if (waitMilliseconds > 0) return { waitSeconds: Math.ceil(waitMilliseconds / 1000), state }
  const quietSince = (state.lockedUntil ?? state.windowStartedAt).getTime()
  const locks = now.getTime() - quietSince > rule.lockSecondsMaximum * 1000 ? 0 : state.locks
  const isNewWindow =
    state.lockedUntil !== null || now.getTime() - state.windowStartedAt.getTime() >= rule.windowSeconds * 1000
  const failures = isNewWindow ? 1 : state.failures + 1
  const windowStartedAt = isNewWindow ? now : state.windowStartedAt
  if (failures < rule.failuresMaximum)
    return { waitSeconds: 0, state: { failures, windowStartedAt, locks, lockedUntil: null } }
  const lockSeconds = Math.min(rule.lockSeconds * 2 ** Math.min(locks, 30), rule.lockSecondsMaximum)
  return {
    waitSeconds: 0,
    state: { failures, windowStartedAt, locks: locks + 1, lockedUntil: new Date(now.getTime() + lockSeconds * 1000) },
  }
}
