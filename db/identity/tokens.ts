/** API tokens. A token is found by the SHA-256 of its text and is revoked with its user's membership. */
import { sql } from 'kysely'
import type { Role, TokenScope } from '../../domain/permissions.ts'
import type { Queries } from '../kit/open.ts'
import { comesAfter, type ListPlace } from '../kit/page.ts'
import { hashSecret } from './sessions.ts'
import { selectWhere, updateWhere } from '../kit/where.ts'
import { camelRow } from '../kit/row.ts'

const MINUTE_MILLISECONDS = 60_000

export interface NewToken {
  readonly id: string
  readonly accountId: string
  readonly userId: string
  readonly name: string
  readonly token: string
  readonly scope: TokenScope
  readonly allowedCidrs: readonly string[]
  readonly createdAt: Date
  readonly expiresAt: Date | null
}

/** False when the account has a token of that name that was not revoked. */
export async function createToken(queries: Queries, draft: NewToken): Promise<boolean> {
  const added = await queries
    .insertInto('api_token')
    .values({
      id: draft.id,
      account_id: draft.accountId,
      user_id: draft.userId,
      name: draft.name,
      secret_hash: hashSecret(draft.token),
      token_hint: draft.token.slice(-4),
      scope: JSON.stringify(draft.scope),
      allowed_cidrs: JSON.stringify(draft.allowedCidrs),
      created_at: draft.createdAt,
      expires_at: draft.expiresAt,
      last_used_ip: null,
    })
    .onConflict((conflict) => conflict.columns(['account_id', 'name']).where('revoked_at', 'is', null).doNothing())
    .executeTakeFirst()
  return added.numInsertedOrUpdatedRows === 1n
}

/** The token of the account that has the name, which a revoked one has no longer. */
export const findTokenNamed = (
  queries: Queries,
  accountId: string,
  name: string,
): Promise<{ readonly id: string } | undefined> =>
  selectWhere(queries, 'api_token', { account_id: accountId, name })
    .where('revoked_at', 'is', null)
    .select('id')
    .executeTakeFirst()

/** The person's live tokens of the account that expire before the time, the earliest first. */
export async function listExpiringTokens(
  queries: Queries,
  wanted: {
    readonly accountId: string
    readonly userId: string
    readonly now: Date
    readonly before: Date
    readonly limit: number
  },
): Promise<readonly { readonly id: string; readonly name: string; readonly expiresAt: Date }[]> {
  const rows = await selectWhere(queries, 'api_token', { account_id: wanted.accountId, user_id: wanted.userId })
    .select(['id', 'name', 'expires_at'])
    .where('revoked_at', 'is', null)
    .where('expires_at', '>', wanted.now)
    .where('expires_at', '<', wanted.before)
    .orderBy('expires_at')
    .orderBy('id')
    .limit(wanted.limit)
    .execute()
  return rows.flatMap(({ id, name, expires_at: expiresAt }) => (expiresAt === null ? [] : [{ id, name, expiresAt }]))
}

/** Whether a token is neither revoked nor expired. */
export const isTokenLive = (now: Date) =>
  sql<boolean>`(api_token.revoked_at is null and (api_token.expires_at is null or api_token.expires_at > ${now}))`

export interface LiveToken {
  readonly id: string
  readonly name: string
  readonly scope: TokenScope
  readonly allowedCidrs: readonly string[]
  readonly expiresAt: Date | null
  readonly userId: string
  readonly accountId: string
  readonly role: Role
  readonly email: string
  readonly emailVerifiedAt: Date | null
  readonly lastUsedAt: Date | null
}

export interface FoundToken {
  readonly secretHash: Buffer
  readonly token: LiveToken
}

/** Those of the tokens with these hashes (see hashSecret) that may be used now: not revoked, not expired, of a member
 *  who is not disabled. */
export async function findTokens(queries: Queries, secretHashes: readonly Buffer[], now: Date): Promise<FoundToken[]> {
  if (secretHashes.length === 0) return []
  const rows = await queries
    .selectFrom('api_token')
    .innerJoin('app_user', 'app_user.id', 'api_token.user_id')
    .innerJoin('membership', (join) =>
      join
        .onRef('membership.user_id', '=', 'api_token.user_id')
        .onRef('membership.account_id', '=', 'api_token.account_id'),
    )
    .select([
      'api_token.id',
      'api_token.secret_hash',
      'api_token.name',
      'api_token.scope',
      'api_token.allowed_cidrs',
      'api_token.expires_at',
      'api_token.last_used_at',
      'api_token.user_id',
      'api_token.account_id',
      'membership.role',
      'app_user.email',
      'app_user.email_verified_at',
    ])
    .where('api_token.secret_hash', '=', sql<Buffer>`any(${secretHashes}::bytea[])`)
    .where('app_user.disabled_at', 'is', null)
    .where(isTokenLive(now))
    .execute()
  return rows.map(({ secret_hash: secretHash, ...row }) => ({
    secretHash,
    token: { ...camelRow(row), scope: row.scope as TokenScope }, // written by createToken only
  }))
}

/** The time rounded down to the minute, as last uses are recorded. */
export const minuteOf = (at: Date): Date =>
  new Date(Math.floor(at.getTime() / MINUTE_MILLISECONDS) * MINUTE_MILLISECONDS)

/** Records time and address of the last use, at most once a minute. */
export async function markTokenUsed(queries: Queries, id: string, minute: Date, sourceIp: string): Promise<void> {
  await updateWhere(queries, 'api_token', { id })
    .set({ last_used_at: minute, last_used_ip: sourceIp })
    .where((where) => where.or([where('last_used_at', 'is', null), where('last_used_at', '<', minute)]))
    .execute()
}

export interface TokenRow {
  readonly id: string
  readonly name: string
  readonly scope: TokenScope
  readonly tokenHint: string
  readonly userId: string
  readonly userEmail: string
  readonly createdAt: Date
  readonly expiresAt: Date | null
  readonly lastUsedAt: Date | null
  readonly lastUsedIp: string | null
  readonly revokedAt: Date | null
  readonly allowedCidrs: readonly string[]
}

export interface TokenPage {
  readonly accountId: string
  /** Only the tokens of this user. */
  readonly userId?: string
  /** Only after this one, newest first. */
  readonly after: ListPlace | undefined
  readonly limit: number
}

/** Newest first. */
export async function listTokens(queries: Queries, page: TokenPage): Promise<TokenRow[]> {
  const { userId } = page
  const rows = await selectTokens(queries)
    .where('api_token.account_id', '=', page.accountId)
    .$if(userId !== undefined, (query) => query.where('api_token.user_id', '=', userId ?? ''))
    .where(comesAfter(page.after, { createdAt: 'api_token.created_at', id: 'api_token.id' }))
    .orderBy('api_token.created_at', 'desc')
    .orderBy('api_token.id', 'desc')
    .limit(page.limit)
    .execute()
  return rows.map(toTokenRow)
}

/** The token must exist. */
export async function readToken(queries: Queries, id: string): Promise<TokenRow> {
  return toTokenRow(await selectTokens(queries).where('api_token.id', '=', id).executeTakeFirstOrThrow())
}

const selectTokens = (queries: Queries) =>
  queries
    .selectFrom('api_token')
    .innerJoin('app_user', 'app_user.id', 'api_token.user_id')
    .select([
      'api_token.id',
      'api_token.name',
      'api_token.scope',
      'api_token.token_hint',
      'api_token.user_id',
      'app_user.email as user_email',
      'api_token.created_at',
      'api_token.expires_at',
      'api_token.last_used_at',
      'api_token.last_used_ip',
      'api_token.revoked_at',
      'api_token.allowed_cidrs',
    ])

type SelectedToken = Awaited<ReturnType<ReturnType<typeof selectTokens>['execute']>>[number]

const toTokenRow = (row: SelectedToken): TokenRow => ({
  ...camelRow(row),
  scope: row.scope as TokenScope, // written by createToken only
})

/** Tokens of the user in all accounts that may still be used. */
export async function countLiveTokens(queries: Queries, userId: string, now: Date): Promise<number> {
  const counted = await selectWhere(queries, 'api_token', { user_id: userId })
    .select((select) => select.fn.countAll<number>().as('count'))
    .where(isTokenLive(now))
    .executeTakeFirstOrThrow()
  return Number(counted.count)
}

/** Revokes a token of the account (of the user, when given) and returns its name; undefined when there is no such token
 *  to revoke. */
export async function revokeToken(
  queries: Queries,
  target: { readonly accountId: string; readonly id: string; readonly userId?: string; readonly now: Date },
): Promise<string | undefined> {
  const { userId } = target
  const revoked = await updateWhere(queries, 'api_token', { account_id: target.accountId, id: target.id })
    .set({ revoked_at: target.now })
    .where('revoked_at', 'is', null)
    .$if(userId !== undefined, (query) => query.where('user_id', '=', userId ?? ''))
    .returning('name')
    .executeTakeFirst()
  return revoked?.name
}

/** Revokes every token that the user has in the account. */
export async function revokeTokensOfMember(
  queries: Queries,
  accountId: string,
  userId: string,
  now: Date,
): Promise<void> {
  await revokeTokens(queries, { account_id: accountId, user_id: userId }, now)
}

/** Revokes every token of the user, in all accounts. Returns how many there were. */
export const revokeTokensOfUser = (queries: Queries, userId: string, now: Date): Promise<number> =>
  revokeTokens(queries, { user_id: userId }, now)

/** Revokes every token of the account, of all users. Returns how many there were. */
export const revokeTokensOfAccount = (queries: Queries, accountId: string, now: Date): Promise<number> =>
  revokeTokens(queries, { account_id: accountId }, now)

async function revokeTokens(
  queries: Queries,
  of: { readonly account_id?: string; readonly user_id?: string },
  now: Date,
): Promise<number> {
  const revoked = await queries
    .updateTable('api_token')
    .set({ revoked_at: now })
    .where((where) => where.and(of))
    .where('revoked_at', 'is', null)
    .executeTakeFirst()
  return Number(revoked.numUpdatedRows)
}
