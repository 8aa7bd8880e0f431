/** Credits and coupons of an account. */
import * as routes from '../../../resources/credit/index.ts'
import { couponRefused } from '../../../domain/billing/coupon.ts'
import { appendAudit } from '../../../db/audit/index.ts'
import {
  type CreditRow,
  creditBalance,
  creditState,
  listCouponAttempts,
  listCredits,
  redeemCoupon,
} from '../../../db/account/index.ts'
import type { Answer, Call, Customer } from '../../../kit/http/call.ts'
import { type Endpoint, customerEndpoint } from '../../../kit/http/endpoint.ts'
import { auditEntryOf } from '../../kit/change/audit.ts'
import type { IdentityParts } from '../../identity/parts.ts'
import { pageOfRows } from '../../kit/list/page.ts'
import { viewOf } from '../../../resources/kit/view.ts'
import { noun } from '../../kit/noun.ts'

const OUTCOMES_SHOWN = 10

const creditEndpoints = (parts: IdentityParts): readonly Endpoint[] => [
  customerEndpoint(routes.redeemCoupon, (call) => redeem(parts, call)),
  customerEndpoint(routes.listCredits, (call) => list(parts, call)),
]

export const creditView = (row: CreditRow, now: Date) =>
  viewOf(routes.Credit, row, { remaining_cents: row.amountCents - row.spentCents, state: creditState(row, now) })

async function redeem(parts: IdentityParts, call: Call<typeof routes.redeemCoupon, Customer>): Promise<Answer> {
  const { caller, body, now } = call
  const redeemed = await parts.db.transaction().execute(async (tx) => {
    const result = await redeemCoupon(tx, { accountId: caller.accountId, code: body.code, now, random: parts.random })
    if (result.outcome === 'applied') {
      await appendAudit(
        tx,
        auditEntryOf(call, {
          resourceType: 'credit',
          resourceId: result.credit.id,
          detail: { label: result.credit.label },
        }),
        parts,
      )
    }
    return result
  })
  if (redeemed.outcome !== 'applied') throw couponRefused(redeemed.outcome)
  return { status: 201, body: { credit: creditView(redeemed.credit, now) } }
}

async function list(parts: IdentityParts, call: Call<typeof routes.listCredits, Customer>): Promise<Answer> {
  const {
    caller: { accountId },
    now,
  } = call
  const { status, body } = await pageOfRows(
    parts,
    call,
    (after, limit) => listCredits(parts.db, { accountId, after, limit }),
    (credits) => credits.map((credit) => creditView(credit, now)),
  )
  const attempts = await listCouponAttempts(parts.db, accountId, OUTCOMES_SHOWN)
  return {
    status,
    body: {
      ...body,
      balance_cents: await creditBalance(parts.db, accountId, now),
      coupon_outcomes: attempts.map(({ at, codeHint, outcome }) => ({
        at: at.toISOString(),
        code_hint: codeHint,
        outcome,
      })),
    },
  }
}

export const credit = noun<IdentityParts>({ name: 'credit', endpoints: creditEndpoints })
