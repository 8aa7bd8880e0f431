/** Support consents and support sessions. A session is issued with a code and active from its redemption. It expires,
 *  or is ended by the customer, by staff or by itself. */
import { sql, type Transaction } from 'kysely'
import type { SupportMode } from '../../domain/permissions.ts'
import type { Queries } from '../kit/open.ts'
import { hashSecret } from '../identity/index.ts'
import type { Tables } from '../tables.ts'
import { selectWhere, updateWhere } from '../kit/where.ts'

export const SUPPORT_SESSION_SECONDS = 3600

export interface ConsentRow {
  readonly id: string
  readonly mode: SupportMode
  readonly grantedByEmail: string
  readonly reference: string | null
  readonly createdAt: Date
  readonly expiresAt: Date
  readonly revokedAt: Date | null
  readonly sessions: number
}

/** Newest first, of those that were granted since the instant. */
export async function listConsents(queries: Queries, accountId: string, since: Date): Promise<ConsentRow[]> {
  const rows = await selectWhere(queries, 'support_consent', { account_id: accountId })
    .select((select) => [
      'id',
      'mode',
      'granted_by_email',
      'reference',
      'created_at',
      'expires_at',
      'revoked_at',
      select
        .selectFrom('support_session')
        .select((count) => count.fn.countAll<number>().as('count'))
        .whereRef('consent_id', '=', 'support_consent.id')
        .as('sessions'),
    ])
    .where('created_at', '>', since)
    .orderBy('created_at', 'desc')
    .orderBy('id', 'desc')
    .execute()
  return rows.map((row) => ({
    id: row.id,
    mode: row.mode,
    grantedByEmail: row.granted_by_email,
    reference: row.reference,
    createdAt: row.created_at,
    expiresAt: row.expires_at,
    revokedAt: row.revoked_at,
    sessions: Number(row.sessions ?? 0),
  }))
}

/** The live consent of the mode. Locks the account's row: this serializes consents and sessions of one account. */
export async function lockLiveConsent(
  tx: Transaction<Tables>,
  accountId: string,
  mode: SupportMode,
  now: Date,
): Promise<{ id: string; expiresAt: Date } | undefined> {
  await selectWhere(tx, 'account', { id: accountId }).select('id').forUpdate().executeTakeFirst()
  const row = await selectWhere(tx, 'support_consent', { account_id: accountId, mode })
    .select(['id', 'expires_at'])
    .where('revoked_at', 'is', null)
    .where('expires_at', '>', now)
    .executeTakeFirst()
  return row && { id: row.id, expiresAt: row.expires_at }
}

export interface NewConsent {
  readonly id: string
  readonly accountId: string
  readonly mode: SupportMode
  readonly grantedByEmail: string
  readonly reference: string | null
  readonly now: Date
  readonly expiresAt: Date
}

/** For the complete account, until it expires or is revoked. */
export async function grantConsent(tx: Transaction<Tables>, consent: NewConsent): Promise<void> {
  await tx
    .insertInto('support_consent')
    .values({
      id: consent.id,
      account_id: consent.accountId,
      mode: consent.mode,
      granted_by_email: consent.grantedByEmail,
      reference: consent.reference,
      created_at: consent.now,
      expires_at: consent.expiresAt,
    })
    .execute()
}

/** Revokes a live consent and ends the sessions of its mode. Returns 'unknown', 'over', or what was revoked and the
 *  sessions that this ended. */
export async function revokeConsent(
  tx: Transaction<Tables>,
  accountId: string,
  id: string,
  now: Date,
): Promise<'unknown' | 'over' | { readonly mode: SupportMode; readonly ended: readonly SupportSessionRow[] }> {
  const row = await selectWhere(tx, 'support_consent', { account_id: accountId, id })
    .select(['mode', 'expires_at', 'revoked_at'])
    .forUpdate()
    .executeTakeFirst()
  if (row === undefined) return 'unknown'
  if (row.revoked_at !== null || row.expires_at <= now) return 'over'
  await updateWhere(tx, 'support_consent', { id }).set({ revoked_at: now }).execute()
  const ended = await updateWhere(tx, 'support_session', { account_id: accountId, mode: row.mode })
    .set({ ended_at: now })
    .where('ended_at', 'is', null)
    .returningAll()
    .execute()
  // A session that had expired, or whose code nobody redeemed in time, had ended by itself.
  const isOpen = (each: SessionColumns) =>
    each.expires_at > now && (each.redeemed_at !== null || each.code_expires_at > now)
  return { mode: row.mode, ended: ended.filter(isOpen).map(toRow) }
}

export interface SupportSessionRow {
  readonly id: string
  readonly accountId: string
  /** The owner, as whom the session acts. */
  readonly userId: string
  readonly staffId: string
  readonly staffEmail: string
  readonly staffName: string
  readonly mode: SupportMode
  readonly reason: string
  readonly ticket: string | null
  readonly createdAt: Date
  readonly redeemedAt: Date | null
  readonly expiresAt: Date
  readonly endedAt: Date | null
}

export interface NewSupportSession extends Omit<SupportSessionRow, 'redeemedAt' | 'endedAt'> {
  readonly consentId: string | null
  readonly code: string
  readonly codeExpiresAt: Date
}

/** Neither the code nor a secret is stored; the session is active once its code was redeemed. */
export async function issueSupportSession(tx: Transaction<Tables>, session: NewSupportSession): Promise<void> {
  await tx
    .insertInto('support_session')
    .values({
      id: session.id,
      account_id: session.accountId,
      user_id: session.userId,
      consent_id: session.consentId,
      staff_id: session.staffId,
      staff_email: session.staffEmail,
      staff_name: session.staffName,
      mode: session.mode,
      reason: session.reason,
      ticket: session.ticket,
      code_hash: hashSecret(session.code),
      code_expires_at: session.codeExpiresAt,
      secret_hash: null,
      created_at: session.createdAt,
      expires_at: session.expiresAt,
    })
    .execute()
}

const selectSessions = (queries: Queries) => queries.selectFrom('support_session').selectAll('support_session')
type SessionColumns = Awaited<ReturnType<ReturnType<typeof selectSessions>['execute']>>[number]
const toRow = (row: SessionColumns): SupportSessionRow => ({
  id: row.id,
  accountId: row.account_id,
  userId: row.user_id,
  staffId: row.staff_id,
  staffEmail: row.staff_email,
  staffName: row.staff_name,
  mode: row.mode,
  reason: row.reason,
  ticket: row.ticket,
  createdAt: row.created_at,
  redeemedAt: row.redeemed_at,
  expiresAt: row.expires_at,
  endedAt: row.ended_at,
})

/** Whether the person it was issued to is a member of the staff in a role that may access accounts. */
const isOfStaff = sql<boolean>`exists (select from staff_user where staff_user.id = support_session.staff_id
  and staff_user.disabled_at is null and staff_user.role in ('support', 'operations'))`

/** Whether a session is still open: it was not ended, has not expired, and the person still has the role. */
export const isSupportOpen = (now: Date) =>
  sql<boolean>`(support_session.ended_at is null and support_session.expires_at > ${now} and ${isOfStaff})`

/** Redeems a code that is valid and unused: the session has `secret` from now on. Undefined for any other code, and
 *  when the person has left the staff. */
export async function redeemSupportCode(
  tx: Transaction<Tables>,
  code: string,
  secret: string,
  now: Date,
): Promise<SupportSessionRow | undefined> {
  const row = await updateWhere(tx, 'support_session', { code_hash: hashSecret(code) })
    .set({ redeemed_at: now, secret_hash: hashSecret(secret) })
    .where('code_expires_at', '>', now)
    .where('redeemed_at', 'is', null)
    .where('ended_at', 'is', null)
    .where(isOfStaff)
    .returningAll()
    .executeTakeFirst()
  return row && toRow(row)
}

/** The active session with that secret; undefined when the person has left the staff. */
export async function findSupportSession(
  queries: Queries,
  secret: string,
  now: Date,
): Promise<(SupportSessionRow & { readonly ownerEmail: string; readonly ownerVerifiedAt: Date | null }) | undefined> {
  const row = await selectSessions(queries)
    .innerJoin('app_user', 'app_user.id', 'support_session.user_id')
    .select(['app_user.email', 'app_user.email_verified_at'])
    .where('secret_hash', '=', hashSecret(secret))
    .where(isSupportOpen(now))
    .executeTakeFirst()
  return row && { ...toRow(row), ownerEmail: row.email, ownerVerifiedAt: row.email_verified_at }
}

const SESSIONS_LISTED_MAXIMUM = 1_000

/** Sessions that are issued (their code can still be redeemed) or active. */
export async function listOpenSupportSessions(
  queries: Queries,
  now: Date,
  accountId?: string,
): Promise<SupportSessionRow[]> {
  const rows = await selectSessions(queries)
    .where('ended_at', 'is', null)
    .where('expires_at', '>', now)
    .where((where) => where.or([where('redeemed_at', 'is not', null), where('code_expires_at', '>', now)]))
    .$if(accountId !== undefined, (query) => query.where('account_id', '=', accountId ?? ''))
    .orderBy('created_at', 'desc')
    .limit(SESSIONS_LISTED_MAXIMUM)
    .execute()
  return rows.map(toRow)
}

/** Ends the session; undefined when it is unknown or over. */
export async function endSupportSession(
  tx: Transaction<Tables>,
  id: string,
  now: Date,
): Promise<SupportSessionRow | undefined> {
  const row = await updateWhere(tx, 'support_session', { id })
    .set({ ended_at: now })
    .where('ended_at', 'is', null)
    .where('expires_at', '>', now)
    .returningAll()
    .executeTakeFirst()
  return row && toRow(row)
}
