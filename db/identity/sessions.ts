/** Portal sessions. A session is found by the SHA-256 of its secret; it acts for its user's active account. */
import { createHash } from 'node:crypto'
import { sql } from 'kysely'
import type { Role } from '../../domain/permissions.ts'
import type { Queries } from '../kit/open.ts'
import { deleteWhere, selectWhere, updateWhere } from '../kit/where.ts'
import { camelRow } from '../kit/row.ts'

/** Absolute lifetime of a session. */
export const SESSION_SECONDS = 7 * 86_400
/** Idle timeout of a session. */
const SESSION_IDLE_SECONDS = 86_400
/** Interval at which use is recorded. */
const LAST_SEEN_UPDATE_SECONDS = 60
const SESSIONS_LISTED_MAXIMUM = 1_000
const USER_AGENT_CHARACTERS_MAXIMUM = 512

/** A session last used at this instant or before has been idle for too long. */
const idleSince = (now: Date): Date => new Date(now.getTime() - SESSION_IDLE_SECONDS * 1000)

/** The SHA-256 by which random secrets are stored and found. */
export const hashSecret = (secret: string): Buffer => createHash('sha256').update(secret).digest()

export interface NewSession {
  readonly id: string
  readonly secret: string
  readonly userId: string
  readonly now: Date
  readonly expiresAt: Date
  readonly userAgent: string
  readonly sourceIp: string
  readonly hasSecondFactor: boolean
}

/** The secret itself is not stored. */
export async function createSession(queries: Queries, session: NewSession): Promise<void> {
  await queries
    .insertInto('session')
    .values({
      id: session.id,
      secret_hash: hashSecret(session.secret),
      user_id: session.userId,
      created_at: session.now,
      last_seen_at: session.now,
      expires_at: session.expiresAt,
      user_agent: session.userAgent.slice(0, USER_AGENT_CHARACTERS_MAXIMUM),
      source_ip: session.sourceIp,
      has_second_factor: session.hasSecondFactor,
    })
    .execute()
}

export interface LiveSession {
  readonly id: string
  readonly userId: string
  readonly accountId: string
  readonly role: Role
  readonly email: string
  readonly emailVerifiedAt: Date | null
  readonly expiresAt: Date
}

/** Whether the session may act for the account of the membership: a second factor was proven in it, or the account
 *  requires none, or it did not require one yet when the person was a member and the session was open. */
const meetsPolicy = sql<boolean>`(not account.requires_second_factor or session.has_second_factor
  or greatest(session.created_at, membership.joined_at) <= account.second_factor_required_since)`

/** Whether the session may act for that account of its user's: see the policy of second factors. */
export async function mayActFor(queries: Queries, id: string, accountId: string): Promise<boolean> {
  const found = await queries
    .selectFrom('session')
    .innerJoin('membership', 'membership.user_id', 'session.user_id')
    .innerJoin('account', 'account.id', 'membership.account_id')
    .select('session.id')
    .where('session.id', '=', id)
    .where('membership.account_id', '=', accountId)
    .where(meetsPolicy)
    .executeTakeFirst()
  return found !== undefined
}

/** Records that the person proved a second factor in the session. */
export async function markSecondFactor(queries: Queries, id: string): Promise<void> {
  await updateWhere(queries, 'session', { id }).set({ has_second_factor: true }).execute()
}

/** The live session with that secret: not ended, not expired, not idle for too long, of a user who is not disabled and
 *  belongs to the active account, whose policy it meets. */
export async function findSession(queries: Queries, secret: string, now: Date): Promise<LiveSession | undefined> {
  const row = await queries
    .selectFrom('session')
    .innerJoin('app_user', 'app_user.id', 'session.user_id')
    .innerJoin('membership', (join) =>
      join
        .onRef('membership.user_id', '=', 'app_user.id')
        .onRef('membership.account_id', '=', 'app_user.active_account_id'),
    )
    .innerJoin('account', 'account.id', 'membership.account_id')
    .select([
      'session.id',
      'session.user_id',
      'session.expires_at',
      'session.last_seen_at',
      'app_user.active_account_id',
      'app_user.email',
      'app_user.email_verified_at',
      'membership.role',
    ])
    .where('session.secret_hash', '=', hashSecret(secret))
    .where('app_user.disabled_at', 'is', null)
    .where('session.expires_at', '>', now)
    .where('session.last_seen_at', '>', idleSince(now))
    .where(meetsPolicy)
    .executeTakeFirst()
  if (row === undefined) return undefined
  if (now.getTime() - row.last_seen_at.getTime() >= LAST_SEEN_UPDATE_SECONDS * 1000)
    await updateLastSeen(queries, row.id, row.active_account_id, row.user_id, now)
  return {
    id: row.id,
    userId: row.user_id,
    accountId: row.active_account_id,
    role: row.role,
    email: row.email,
    emailVerifiedAt: row.email_verified_at,
    expiresAt: row.expires_at,
  }
}

async function updateLastSeen(
  queries: Queries,
  id: string,
  accountId: string,
  userId: string,
  now: Date,
): Promise<void> {
  await updateWhere(queries, 'session', { id }).set({ last_seen_at: now }).execute()
  await markActive(queries, accountId, userId, now)
}

/** Records that the person was active in the account. */
export async function markActive(queries: Queries, accountId: string, userId: string, now: Date): Promise<void> {
  await updateWhere(queries, 'membership', { account_id: accountId, user_id: userId })
    .set({ last_active_at: now })
    .execute()
}

/** Does nothing when it has ended. */
export async function endSession(queries: Queries, id: string): Promise<void> {
  await deleteWhere(queries, 'session', { id }).execute()
}

/** Ends the session with that secret, for any user; does nothing when there is none. */
export async function endSessionOf(queries: Queries, secret: string): Promise<void> {
  await deleteWhere(queries, 'session', { secret_hash: hashSecret(secret) }).execute()
}

/** Ends the user's sessions, except `except` or only that one when given, and returns how many live ones these were. */
export async function endSessionsOfUser(
  queries: Queries,
  userId: string,
  now: Date,
  which: { readonly except?: string | undefined; readonly only?: string } = {},
): Promise<number> {
  const { except, only } = which
  const ended = await deleteWhere(queries, 'session', { user_id: userId })
    .$if(except !== undefined, (query) => query.where('id', '<>', except ?? ''))
    .$if(only !== undefined, (query) => query.where(sql`id::text`, '=', only))
    .returning(['expires_at', 'last_seen_at'])
    .execute()
  return ended.filter((row) => row.expires_at > now && row.last_seen_at > idleSince(now)).length
}

export interface SessionRow {
  readonly id: string
  readonly createdAt: Date
  readonly lastSeenAt: Date
  readonly expiresAt: Date
  readonly userAgent: string
  readonly sourceIp: string
}

/** The live sessions of the user, the most recently used first. */
export async function listSessions(queries: Queries, userId: string, now: Date): Promise<SessionRow[]> {
  const rows = await selectWhere(queries, 'session', { user_id: userId })
    .select(['id', 'created_at', 'last_seen_at', 'expires_at', 'user_agent', 'source_ip'])
    .where('expires_at', '>', now)
    .where('last_seen_at', '>', idleSince(now))
    .orderBy('last_seen_at', 'desc')
    .orderBy('id')
    .limit(SESSIONS_LISTED_MAXIMUM)
    .execute()
  return rows.map(camelRow)
}

/** Removes sessions that can never be used again. */
export async function forgetOldSessions(queries: Queries, now: Date): Promise<void> {
  await queries
    .deleteFrom('session')
    .where(sql<boolean>`expires_at <= ${now} or last_seen_at <= ${idleSince(now)}`)
    .execute()
}
