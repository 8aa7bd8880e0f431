import { describe, expect, test } from 'vitest'
import { checkCoupon, type CouponFacts, couponHint, couponRefused } from '../../../domain/billing/coupon.ts'

const NOW = new Date('2026-01-01T12:00:00.000Z')
const at = (milliseconds: number) => new Date(NOW.getTime() + milliseconds)
const coupon = (facts: Partial<CouponFacts>): CouponFacts => ({
  isActive: true,
  validFrom: null,
  validUntil: null,
  redemptionsMaximum: null,
  redemptions: 7,
  isRedeemed: false,
  ...facts,
})

test.each<readonly [string, Partial<CouponFacts>, string]>([
  ['one without bounds', {}, 'applied'],
  ['one that is switched off', { isActive: false }, 'inactive'],
  ['one from its first instant on', { validFrom: NOW }, 'applied'],
  ['one just before it', { validFrom: at(1) }, 'not_yet_valid'],
  ['one just before its end', { validUntil: at(1) }, 'applied'],
  ['one at its end', { validUntil: NOW }, 'expired'],
  ['one with a redemption left', { redemptionsMaximum: 8 }, 'applied'],
  ['one with none left', { redemptionsMaximum: 7 }, 'exhausted'],
  ['one that the account has redeemed', { isRedeemed: true }, 'already_redeemed'],
])('%s', (_which, facts, outcome) => expect(checkCoupon(coupon(facts), NOW)).toBe(outcome))

test('one that does not exist is unknown', () => expect(checkCoupon(undefined, NOW)).toBe('unknown'))

test('the first reason counts', () => {
  const all = { isActive: false, validFrom: at(1), validUntil: at(-1), isRedeemed: true, redemptionsMaximum: 1 }
  const outcomes = [
    all,
    { ...all, isActive: true },
    { ...all, isActive: true, validFrom: null },
    { ...all, isActive: true, validFrom: null, validUntil: null },
    { ...all, isActive: true, validFrom: null, validUntil: null, isRedeemed: false },
  ].map((facts) => checkCoupon(coupon(facts), NOW))
  expect(outcomes).toEqual(['inactive', 'not_yet_valid', 'expired', 'already_redeemed', 'exhausted'])
})

describe('a refusal', () => {
  test.each(['unknown', 'inactive', 'not_yet_valid', 'expired', 'exhausted', 'already_redeemed'] as const)(
    '%s is 422 with its reason',
    (refusal) =>
      expect(couponRefused(refusal)).toMatchObject({ status: 422, members: { reason: `coupon_${refusal}` } }),
  )
})

test('a hint shows three characters', () => expect(couponHint('SUMMER-2026')).toBe('SUM…'))
