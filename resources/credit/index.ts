/** Credits and coupons of an account: public shapes and routes. */
import { z } from 'zod'
import { COUPON_OUTCOMES } from '../../domain/billing/coupon.ts'
import { DateTime, pageOf, PageQuery, Uuid } from '../kit/shapes.ts'
import { routesUnder } from '../kit/verbs.ts'
import { CouponCode } from '../kit/fields.ts'

export const Credit = z
  .strictObject({
    id: Uuid,
    label: z.string(),
    source: z.enum(['sign_up', 'coupon', 'staff']),
    amount_cents: z.int(),
    remaining_cents: z.int(),
    created_at: DateTime,
    expires_at: DateTime.nullable(),
    state: z.enum(['live', 'spent', 'expired', 'revoked']),
  })
  .meta({ id: 'Credit' })
const CouponOutcome = z
  .strictObject({ at: DateTime, code_hint: z.string(), outcome: z.enum(COUPON_OUTCOMES) })
  .meta({ id: 'CouponOutcome' })

const credits = routesUnder({ path: '/v1/account' })

export const redeemCoupon = credits.post('redeem_coupon', '/coupons', {
  summary: 'Redeem a coupon',
  permission: 'billing.manage',
  isRefusedToSupport: true,
  needs: 'verified',
  audit: 'account.coupon_redeemed',
  noDryRun: 'it would tell codes that are valid from others',
  body: z.strictObject({ code: CouponCode.trim().min(1) }),
  example: { code: 'WELCOME' },
  answers: { 201: z.strictObject({ credit: Credit }) },
  refuses: [400, 422],
  rates: [{ name: 'redeem_coupon', by: 'account', perHour: 10 }],
})
export const listCredits = credits.get('list_credits', '/credits', {
  summary: 'List credits',
  description: 'Includes the balance of valid credits and the outcomes of the last ten coupons that were tried.',
  permission: 'billing.read',
  query: PageQuery,
  answers: { 200: pageOf(Credit).extend({ balance_cents: z.int(), coupon_outcomes: z.array(CouponOutcome) }) },
})

export const CREDIT_ROUTES = [redeemCoupon, listCredits] as const
