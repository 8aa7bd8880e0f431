/** Credits and coupons of an account: public shapes and routes. */
import { z } from 'zod'
import { COUPON_OUTCOMES } from '../../domain/coupon.ts'
import { route } from '../define.ts'
import { DateTime, PageQuery, pageOf, Uuid } from '../shapes.ts'

const AREA = 'Coupons, credits, quotas'

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

export const redeemCoupon = route({
  id: 'redeem_coupon',
  method: 'POST',
  path: '/v1/account/coupons',
  area: AREA,
  summary: 'Redeem a coupon',
  permission: 'billing.manage',
  audit: 'account.coupon_redeemed',
  requiresVerifiedEmail: true,
  isRefusedToSupport: true,
  body: z.strictObject({ code: z.string().trim().min(1).max(200) }),
  example: { code: 'WELCOME' },
  answers: { 201: z.strictObject({ credit: Credit }) },
  refuses: [400, 422],
  rates: [{ name: 'redeem_coupon', by: 'account', perHour: 10 }],
})
export const listCredits = route({
  id: 'list_credits',
  method: 'GET',
  path: '/v1/account/credits',
  area: AREA,
  summary: 'List credits',
  permission: 'billing.read',
  description: 'With the balance of the live ones and the outcome of the last ten coupons that were tried.',
  query: PageQuery,
  answers: { 200: pageOf(Credit).extend({ balance_cents: z.int(), coupon_outcomes: z.array(CouponOutcome) }) },
  refuses: [400],
})

export const CREDIT_ROUTES = [redeemCoupon, listCredits] as const
