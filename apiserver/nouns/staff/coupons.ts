/** Coupons, for staff. */
import { badField, nameTaken, notFound } from '../../../domain/problem.ts'
import { newestFirst } from '../../../db/kit/page.ts'
import type { Answer, Call, Operator } from '../../../kit/http/call.ts'
import { type Endpoint, operatorEndpoint } from '../../../kit/http/endpoint.ts'
import { newUuid } from '../../../kit/sys/random.ts'
import * as routes from '../../../resources/staff/index.ts'
import type { IdentityParts } from '../../identity/parts.ts'
import { auditStaff } from '../../kit/change/staff-audit.ts'
import { answerOf, readPageByTime } from '../../kit/list/page.ts'

const COLUMNS = [
  'id',
  'code',
  'label',
  'amount_cents',
  'valid_from',
  'valid_until',
  'max_redemptions',
  'redemptions',
  'credit_days',
  'is_active',
  'created_at',
] as const

export const couponEndpoints = (parts: IdentityParts): readonly Endpoint[] => [
  operatorEndpoint(routes.listCoupons, (call) => list(parts, call)),
  operatorEndpoint(routes.createCoupon, (call) => create(parts, call)),
  operatorEndpoint(routes.updateCoupon, (call) => update(parts, call)),
]

interface CouponRow {
  readonly id: string
  readonly code: string
  readonly label: string
  readonly amount_cents: number
  readonly valid_from: Date | null
  readonly valid_until: Date | null
  readonly max_redemptions: number | null
  readonly redemptions: number
  readonly credit_days: number | null
  readonly is_active: boolean
  readonly created_at: Date
}
const toView = (row: CouponRow) => ({
  ...row,
  valid_from: row.valid_from?.toISOString() ?? null,
  valid_until: row.valid_until?.toISOString() ?? null,
  created_at: row.created_at.toISOString(),
})
const dateOf = (text: string | null | undefined): Date | null => (text == null ? null : new Date(text))

async function list(parts: IdentityParts, call: Call<typeof routes.listCoupons, Operator>): Promise<Answer> {
  const page = await readPageByTime(
    parts.cursors,
    call,
    (after, count) => newestFirst(parts.db.selectFrom('coupon').select(COLUMNS), after, count).execute(),
    ({ created_at: createdAt, id }) => ({ createdAt, id }),
    { viewsOf: (rows) => rows.map(toView) },
  )
  return answerOf(page)
}

async function create(parts: IdentityParts, call: Call<typeof routes.createCoupon, Operator>): Promise<Answer> {
  const { body, now } = call
  const window = { from: dateOf(body.valid_from), until: dateOf(body.valid_until) }
  if (window.from !== null && window.until !== null && window.until <= window.from)
    throw badField('valid_until', 'must be after valid_from')
  const code = body.code.toLowerCase()
  return await parts.db.transaction().execute(async (tx) => {
    const coupon = await tx
      .insertInto('coupon')
      .values({
        id: newUuid(parts.random),
        code,
        label: `Coupon ${body.code.toUpperCase()}`,
        amount_cents: body.amount_cents,
        valid_from: window.from,
        valid_until: window.until,
        max_redemptions: body.max_redemptions ?? null,
        credit_days: body.credit_days ?? null,
        is_active: body.is_active ?? true,
        created_at: now,
      })
      .onConflict((conflicting) => conflicting.column('code').doNothing())
      .returning(COLUMNS)
      .executeTakeFirst()
    if (coupon === undefined) {
      const other = await tx.selectFrom('coupon').where('code', '=', code).select('id').executeTakeFirst()
      throw nameTaken('There is a coupon of this code.', other && { type: 'coupon', id: other.id })
    }
    await auditStaff(tx, parts, call, {
      action: 'coupon.create',
      resourceId: coupon.id,
      detail: { code: coupon.code, amount_cents: String(coupon.amount_cents) },
    })
    return { status: 201, body: { coupon: toView(coupon) } }
  })
}

async function update(parts: IdentityParts, call: Call<typeof routes.updateCoupon, Operator>): Promise<Answer> {
  const { body, params } = call
  return await parts.db.transaction().execute(async (tx) => {
    const before = await tx
      .selectFrom('coupon')
      .select(COLUMNS)
      .where((where) => where(where.cast<string>('id', 'text'), '=', params.id))
      .forUpdate()
      .executeTakeFirst()
    if (before === undefined) throw notFound('coupon')
    const after = await tx
      .updateTable('coupon')
      .set({
        valid_from: body.valid_from === undefined ? before.valid_from : dateOf(body.valid_from),
        valid_until: body.valid_until === undefined ? before.valid_until : dateOf(body.valid_until),
        max_redemptions: body.max_redemptions === undefined ? before.max_redemptions : body.max_redemptions,
        credit_days: body.credit_days === undefined ? before.credit_days : body.credit_days,
        is_active: body.is_active ?? before.is_active,
      })
      .where('id', '=', before.id)
      .returning(COLUMNS)
      .executeTakeFirstOrThrow()
    await auditStaff(tx, parts, call, { action: 'coupon.update', resourceId: before.id, detail: { code: before.code } })
    return { status: 200, body: { coupon: toView(after) } }
  })
}
