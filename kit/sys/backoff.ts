/** Exponential back-off with full jitter on the upper half: failure 0 waits in [base/2, base], then doubles up to
 *  `maximum`. */
import type { Random } from './random.ts'

export interface BackoffLimits {
  readonly baseMilliseconds: number
  readonly maximumMilliseconds: number
}

/** Doubles with each failure up to the maximum; spread over its upper half, so that clients that failed together do not
 *  return together. */
export function backoffMilliseconds(failures: number, limits: BackoffLimits, random: Random): number {
  const ceiling = Math.min(limits.maximumMilliseconds, limits.baseMilliseconds * 2 ** Math.min(failures, 30))
  return ceiling / 2 + (ceiling / 2) * random.fraction()
}
