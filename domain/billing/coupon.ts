/** Whether a coupon can be redeemed now. */
import { Problem, type Reason } from '../problem.ts'

export const COUPON_OUTCOMES = [
  'applied',
  'unknown',
  'inactive',
  'not_yet_valid',
  'expired',
  'exhausted',
  'already_redeemed',
  'unavailable',
] as const
export type CouponOutcome = (typeof COUPON_OUTCOMES)[number]
export type CouponRefusal = Exclude<CouponOutcome, 'applied' | 'unavailable'>

export interface CouponFacts {
  readonly isActive: boolean
  readonly validFrom: Date | null
  readonly validUntil: Date | null
  readonly redemptionsMaximum: number | null
  readonly redemptions: number
  /** This account redeemed it before. */
  readonly isRedeemed: boolean
}

/** Whether the coupon can be redeemed now, or else the first reason why not. `validFrom` is the first valid instant,
 *  `validUntil` the first invalid one after it. */
export function checkCoupon(coupon: CouponFacts | undefined, now: Date): 'applied' | CouponRefusal {
  if (coupon === undefined) return 'unknown'
  if (!coupon.isActive) return 'inactive'
  if (coupon.validFrom !== null && now < coupon.validFrom) return 'not_yet_valid'
  if (coupon.validUntil !== null && now >= coupon.validUntil) return 'expired'
  if (coupon.isRedeemed) return 'already_redeemed'
  if (coupon.redemptionsMaximum !== null && coupon.redemptions >= coupon.redemptionsMaximum) return 'exhausted'
  return 'applied'
}

const DETAILS: Readonly<Record<CouponRefusal, string>> = {
  unknown: 'There is no such coupon.',
  inactive: 'The coupon is not active.',
  not_yet_valid: 'The coupon is not valid yet.',
  expired: 'The coupon has expired.',
  exhausted: 'The coupon was redeemed as often as it can be.',
  already_redeemed: 'The account has redeemed this coupon already.',
}

/** 422 for a coupon that is not applied. */
export const couponRefused = (refusal: CouponRefusal): Problem =>
  new Problem(422, DETAILS[refusal], { reason: `coupon_${refusal}` satisfies Reason })

/** Enough of a code to recognize it, not enough to use it. */
export const couponHint = (code: string): string => `${code.slice(0, 3)}…`
