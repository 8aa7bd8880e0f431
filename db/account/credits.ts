/** Credits of accounts, and the coupons that grant them. */
import { sql, type Transaction } from 'kysely'
import { couponHint, type CouponOutcome, type CouponRefusal, checkCoupon } from '../../domain/billing/coupon.ts'
import { newUuid, type Random } from '../../kit/sys/random.ts'
import type { Queries } from '../kit/open.ts'
import { type ListPlace, newestFirst } from '../kit/page.ts'
import type { Tables } from '../tables.ts'
import { selectWhere, updateWhere } from '../kit/where.ts'
import { camelRow } from '../kit/row.ts'

const DAY_MILLISECONDS = 86_400_000

export interface CreditRow {
  readonly id: string
  readonly label: string
  readonly source: 'sign_up' | 'coupon' | 'staff'
  readonly amountCents: number
  readonly spentCents: number
  readonly createdAt: Date
  readonly expiresAt: Date | null
  readonly revokedAt: Date | null
}

const COLUMNS = [
  'id',
  'label',
  'source',
  'amount_cents',
  'spent_cents',
  'created_at',
  'expires_at',
  'revoked_at',
] as const

/** In order of precedence: revoked, spent, expired. */
export const creditState = (row: CreditRow, now: Date): 'live' | 'spent' | 'expired' | 'revoked' =>
  row.revokedAt !== null
    ? 'revoked'
    : row.spentCents >= row.amountCents
      ? 'spent'
      : row.expiresAt !== null && row.expiresAt <= now
        ? 'expired'
        : 'live'

/** Newest first, after the given one. */
export async function listCredits(
  queries: Queries,
  page: { readonly accountId: string; readonly after: ListPlace | undefined; readonly limit: number },
): Promise<CreditRow[]> {
  const credits = selectWhere(queries, 'credit', { account_id: page.accountId }).select(COLUMNS)
  const rows = await newestFirst(credits, page.after, page.limit).execute()
  return rows.map(camelRow)
}

/** The total remaining amount of the account's live credits, in cents. */
export async function creditBalance(queries: Queries, accountId: string, now: Date): Promise<number> {
  const sum = await selectWhere(queries, 'credit', { account_id: accountId })
    .select(sql<string | null>`sum(amount_cents - spent_cents)`.as('cents'))
    .where('revoked_at', 'is', null)
    .where((where) => where.or([where('expires_at', 'is', null), where('expires_at', '>', now)]))
    .executeTakeFirstOrThrow()
  return Number(sum.cents ?? 0)
}

/** When the first of the account's live credits expires; undefined when there is none. */
export async function nextCreditExpiry(queries: Queries, accountId: string, now: Date): Promise<Date | undefined> {
  const next = await selectWhere(queries, 'credit', { account_id: accountId })
    .select('expires_at')
    .where('revoked_at', 'is', null)
    .whereRef('spent_cents', '<', 'amount_cents')
    .where('expires_at', '>', now)
    .orderBy('expires_at')
    .limit(1)
    .executeTakeFirst()
  return next?.expires_at ?? undefined
}

/** Live credits that expire before the time, the earliest first. */
export async function listExpiringCredits(
  queries: Queries,
  accountId: string,
  { now, before, limit }: { readonly now: Date; readonly before: Date; readonly limit: number },
): Promise<readonly CreditRow[]> {
  const rows = await selectWhere(queries, 'credit', { account_id: accountId })
    .select(COLUMNS)
    .where('revoked_at', 'is', null)
    .whereRef('spent_cents', '<', 'amount_cents')
    .where('expires_at', '>', now)
    .where('expires_at', '<', before)
    .orderBy('expires_at')
    .orderBy('id')
    .limit(limit)
    .execute()
  return rows.map(camelRow)
}

export interface NewCredit {
  readonly id: string
  readonly accountId: string
  readonly label: string
  readonly source: CreditRow['source']
  readonly amountCents: number
  readonly couponId?: string
  readonly now: Date
  readonly expiresAt: Date | null
}

export async function addCredit(tx: Transaction<Tables>, credit: NewCredit): Promise<CreditRow> {
  return camelRow(
    await tx
      .insertInto('credit')
      .values({
        id: credit.id,
        account_id: credit.accountId,
        label: credit.label,
        source: credit.source,
        amount_cents: credit.amountCents,
        created_at: credit.now,
        expires_at: credit.expiresAt,
        coupon_id: credit.couponId ?? null,
      })
      .returning(COLUMNS)
      .executeTakeFirstOrThrow(),
  )
}

/** Redeems the code for the account, once, and remembers the attempt. The coupon's row stays locked until the
 *  transaction ends. */
export async function redeemCoupon(
  tx: Transaction<Tables>,
  redemption: { readonly accountId: string; readonly code: string; readonly now: Date; readonly random: Random },
): Promise<{ readonly outcome: 'applied'; readonly credit: CreditRow } | { readonly outcome: CouponRefusal }> {
  const { accountId, now, random } = redemption
  const code = redemption.code.trim().toLowerCase()
  const coupon = await selectWhere(tx, 'coupon', { code }).selectAll().forUpdate().executeTakeFirst()
  const before =
    coupon &&
    (await selectWhere(tx, 'credit', { account_id: accountId, coupon_id: coupon.id }).select('id').executeTakeFirst())
  const outcome = checkCoupon(
    coupon && {
      isActive: coupon.is_active,
      validFrom: coupon.valid_from,
      validUntil: coupon.valid_until,
      redemptionsMaximum: coupon.max_redemptions,
      redemptions: coupon.redemptions,
      isRedeemed: before !== undefined,
    },
    now,
  )
  await recordAttempt(tx, { accountId, code, now, random, outcome })
  if (coupon === undefined || outcome !== 'applied') return { outcome: outcome === 'applied' ? 'unknown' : outcome }
  await updateWhere(tx, 'coupon', { id: coupon.id })
    .set((set) => ({ redemptions: set('redemptions', '+', 1) }))
    .execute()
  const expiresAt = coupon.credit_days === null ? null : new Date(now.getTime() + coupon.credit_days * DAY_MILLISECONDS)
  return {
    outcome,
    credit: await addCredit(tx, {
      id: newUuid(random),
      accountId,
      label: coupon.label,
      source: 'coupon',
      amountCents: coupon.amount_cents,
      couponId: coupon.id,
      now,
      expiresAt,
    }),
  }
}

/** Of an account: more than anybody is shown. */
const ATTEMPTS_MAXIMUM = 100

/** Records the attempt instead of the oldest ones. */
async function recordAttempt(
  queries: Queries,
  attempt: {
    readonly accountId: string
    readonly code: string
    readonly now: Date
    readonly random: Random
    readonly outcome: CouponOutcome
  },
): Promise<void> {
  await queries
    .insertInto('coupon_attempt')
    .values({
      id: newUuid(attempt.random),
      account_id: attempt.accountId,
      at: attempt.now,
      code_hint: couponHint(attempt.code),
      outcome: attempt.outcome,
    })
    .execute()
  const old = selectWhere(queries, 'coupon_attempt', { account_id: attempt.accountId })
    .select('id')
    .orderBy('at', 'desc')
    .offset(ATTEMPTS_MAXIMUM)
  await queries.deleteFrom('coupon_attempt').where('id', 'in', old).execute()
}

/** The last attempts, newest first. */
export async function listCouponAttempts(
  queries: Queries,
  accountId: string,
  limit: number,
): Promise<readonly { at: Date; codeHint: string; outcome: string }[]> {
  const rows = await selectWhere(queries, 'coupon_attempt', { account_id: accountId })
    .select(['at', 'code_hint', 'outcome'])
    .orderBy('at', 'desc')
    .limit(limit)
    .execute()
  return rows.map((row) => ({ at: row.at, codeHint: row.code_hint, outcome: row.outcome }))
}
