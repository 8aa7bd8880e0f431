/** Credits and coupons of an account. */
import { couponRefused } from '../../domain/coupon.ts'
import { appendAudit } from '../../db/audit.ts'
import { creditBalance, type CreditRow, creditState, listCouponAttempts, listCredits, redeemCoupon } from '../../db/credits.ts'
import type { Answer, Call, Customer } from '../../kit/http/call.ts'
import { customerEndpoint, type Endpoint } from '../../kit/http/endpoint.ts'
import * as routes from '../../resources/credit.ts'
import { auditEntryOf } from '../audit.ts'
import type { IdentityParts } from '../identity/parts.ts'

const OUTCOMES_SHOWN = 10

export const creditEndpoints = (parts: IdentityParts): readonly Endpoint[] => [
  customerEndpoint(routes.redeemCoupon, (call) => redeem(parts, call)),
  customerEndpoint(routes.listCredits, (call) => list(parts, call)),
]

export const creditView = (row: CreditRow, now: Date) => ({
  id: row.id, label: row.label, source: row.source, amount_cents: row.amountCents, remaining_cents: row.amountCents - row.spentCents, created_at: row.createdAt.toISOString(),
  expires_at: row.expiresAt?.toISOString() ?? null, state: creditState(row, now),
})

async function redeem(parts: IdentityParts, call: Call<typeof routes.redeemCoupon, Customer>): Promise<Answer> {
  const { caller, body, now } = call
  const redeemed = await parts.db.transaction().execute(async (tx) => {
    const result = await redeemCoupon(tx, { accountId: caller.accountId, code: body.code, now, random: parts.random })
    if (result.outcome === 'applied') {
      await appendAudit(tx, auditEntryOf(call, { resourceType: 'credit', resourceId: result.credit.id, detail: { label: result.credit.label } }), parts)
    }
    return result
  })
  if (redeemed.outcome !== 'applied') throw couponRefused(redeemed.outcome)
  return { status: 201, body: { credit: creditView(redeemed.credit, now) } }
}

async function list(parts: IdentityParts, { route, caller, query, now }: Call<typeof routes.listCredits, Customer>): Promise<Answer> {
  const position = query.cursor === undefined ? undefined : parts.cursors.decode(route.id, caller.accountId, query.cursor)
  const rows = await listCredits(parts.db, {
    accountId: caller.accountId, limit: query.limit + 1, ...(position === undefined ? {} : { after: { createdAt: new Date(Number(position.sortKey)), id: position.id } }),
  })
  const shown = rows.slice(0, query.limit)
  const last = shown.at(-1)
  const attempts = await listCouponAttempts(parts.db, caller.accountId, OUTCOMES_SHOWN)
  return {
    status: 200,
    body: {
      items: shown.map((row) => creditView(row, now)),
      next_cursor: rows.length > query.limit && last !== undefined ? parts.cursors.encode(route.id, caller.accountId, { sortKey: String(last.createdAt.getTime()), id: last.id }) : null,
      balance_cents: await creditBalance(parts.db, caller.accountId, now),
      coupon_outcomes: attempts.map(({ at, codeHint, outcome }) => ({ at: at.toISOString(), code_hint: codeHint, outcome })),
    },
  }
}
