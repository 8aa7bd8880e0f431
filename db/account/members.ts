/** Memberships and invitations. */
import { sql, type Transaction } from 'kysely'
import type { Role } from '../../domain/permissions.ts'
import { isPlatformAccount } from '../../domain/account/platform-account.ts'
import type { Queries } from '../kit/open.ts'
import { endSessionsOfUser, hashSecret, revokeTokensOfMember } from '../identity/index.ts'
import { endKubeconfigs } from '../kubeconfig/index.ts'
import type { Tables } from '../tables.ts'
import { deleteWhere, selectWhere, updateWhere } from '../kit/where.ts'
import { camelRow } from '../kit/row.ts'

export interface MemberRow {
  readonly userId: string
  readonly email: string
  readonly name: string | null
  readonly role: Role
  readonly hasSecondFactor: boolean
  readonly providers: readonly string[]
  readonly joinedAt: Date
  readonly lastActiveAt: Date | null
  readonly disabledAt: Date | null
}

/** The members of the account, ordered by when they joined; only `userId` when it is given. */
export async function listMembers(queries: Queries, accountId: string, userId?: string): Promise<MemberRow[]> {
  const rows = await queries
    .selectFrom('membership')
    .innerJoin('app_user', 'app_user.id', 'membership.user_id')
    .leftJoin('second_factor', (join) =>
      join.onRef('second_factor.user_id', '=', 'app_user.id').on('second_factor.enabled_at', 'is not', null),
    )
    .select([
      'app_user.id',
      'app_user.email',
      'app_user.name',
      'app_user.disabled_at',
      'membership.role',
      'membership.joined_at',
      'membership.last_active_at',
      'second_factor.user_id as factor_of',
      sql<string[]>`array(
        select distinct provider from linked_identity where linked_identity.user_id = app_user.id order by provider
      )`.as('providers'),
    ])
    .where('membership.account_id', '=', accountId)
    .$if(userId !== undefined, (query) => query.where('membership.user_id', '=', userId ?? ''))
    .orderBy('membership.joined_at')
    .orderBy('app_user.id')
    .execute()
  return rows.map((row) => ({
    userId: row.id,
    email: row.email,
    name: row.name,
    role: row.role,
    hasSecondFactor: row.factor_of !== null,
    providers: row.providers,
    joinedAt: row.joined_at,
    lastActiveAt: row.last_active_at,
    disabledAt: row.disabled_at,
  }))
}

export interface AddressRules {
  /** The deployment cannot send mail, so every address counts as confirmed. */
  readonly areAddressesConfirmed?: boolean | undefined
}

/** Whether an owner of the account has a verified email address and may sign in; the platform's own needs none. */
export async function hasVerifiedOwner(
  queries: Queries,
  accountId: string,
  { areAddressesConfirmed = false }: AddressRules,
): Promise<boolean> {
  if (isPlatformAccount(accountId)) return true
  const found = await queries
    .selectFrom('membership')
    .innerJoin('app_user', 'app_user.id', 'membership.user_id')
    .select('app_user.id')
    .where('membership.account_id', '=', accountId)
    .where('membership.role', '=', 'owner')
    .$if(!areAddressesConfirmed, (query) => query.where('app_user.email_verified_at', 'is not', null))
    .where('app_user.disabled_at', 'is', null)
    .limit(1)
    .executeTakeFirst()
  return found !== undefined
}

/** Verified email addresses of the owners who may sign in. */
export async function listOwnerMails(queries: Queries, accountId: string): Promise<readonly string[]> {
  const rows = await queries
    .selectFrom('membership')
    .innerJoin('app_user', 'app_user.id', 'membership.user_id')
    .select('app_user.email')
    .where('membership.account_id', '=', accountId)
    .where('membership.role', '=', 'owner')
    .where('app_user.email_verified_at', 'is not', null)
    .where('app_user.disabled_at', 'is', null)
    .orderBy('app_user.email')
    .execute()
  return rows.map(({ email }) => email)
}

/** The member's role, locked until the transaction ends; undefined when not a member. */
export async function lockMember(
  tx: Transaction<Tables>,
  accountId: string,
  userId: string,
): Promise<Role | undefined> {
  return (
    await selectWhere(tx, 'membership', { account_id: accountId, user_id: userId })
      .select('role')
      .forUpdate()
      .executeTakeFirst()
  )?.role
}

/** The member must be locked, see `lockMember`. */
export async function setRole(tx: Transaction<Tables>, accountId: string, userId: string, role: Role): Promise<void> {
  await updateWhere(tx, 'membership', { account_id: accountId, user_id: userId }).set({ role }).execute()
}

/** Removes the person from the account: deletes the membership, revokes their tokens for it and ends the sessions that
 *  act for it. Their active account becomes another of theirs. */
export async function removeMembership(
  tx: Transaction<Tables>,
  accountId: string,
  userId: string,
  now: Date,
): Promise<void> {
  await deleteWhere(tx, 'membership', { account_id: accountId, user_id: userId }).execute()
  await revokeTokensOfMember(tx, accountId, userId, now)
  await endKubeconfigs(tx, { account_id: accountId, user_id: userId }, now)
  const user = await selectWhere(tx, 'app_user', { id: userId })
    .select('active_account_id')
    .forUpdate()
    .executeTakeFirstOrThrow()
  if (user.active_account_id !== accountId) return
  await endSessionsOfUser(tx, userId, now)
  await resolveActiveAccount(tx, userId)
}

/** Sets the active account to one that the person belongs to: the current one, their own, or the one they joined first.
 *  Returns it; undefined when they belong to none. */
export async function resolveActiveAccount(tx: Transaction<Tables>, userId: string): Promise<string | undefined> {
  const best = await tx
    .selectFrom('membership')
    .innerJoin('app_user', 'app_user.id', 'membership.user_id')
    .select(['membership.account_id', 'app_user.active_account_id'])
    .where('membership.user_id', '=', userId)
    .orderBy(sql`membership.account_id = app_user.active_account_id`, 'desc')
    .orderBy(sql`membership.account_id is not distinct from app_user.own_account_id`, 'desc')
    .orderBy('membership.joined_at')
    .limit(1)
    .executeTakeFirst()
  if (best !== undefined && best.account_id !== best.active_account_id)
    await setActiveAccount(tx, userId, best.account_id)
  return best?.account_id
}

/** The account that the person acts for from now on; they must be a member of it. */
export async function setActiveAccount(tx: Transaction<Tables>, userId: string, accountId: string): Promise<void> {
  await updateWhere(tx, 'app_user', { id: userId }).set({ active_account_id: accountId }).execute()
}

export interface InvitationRow {
  readonly id: string
  readonly accountId: string
  readonly accountName: string
  readonly email: string
  readonly role: 'admin' | 'member' | 'viewer'
  readonly state: 'pending' | 'accepted' | 'revoked'
  readonly invitedByEmail: string
  readonly createdAt: Date
  readonly expiresAt: Date
}

const selectInvitations = (queries: Queries) =>
  queries
    .selectFrom('invitation')
    .innerJoin('account', 'account.id', 'invitation.account_id')
    .select([
      'invitation.id',
      'invitation.account_id',
      'account.name as account_name',
      'invitation.email',
      'invitation.role',
      'invitation.state',
      'invitation.invited_by_email',
      'invitation.created_at',
      'invitation.expires_at',
    ])

export interface NewInvitation {
  readonly id: string
  readonly accountId: string
  readonly email: string
  readonly role: 'admin' | 'member' | 'viewer'
  readonly secret: string
  readonly invitedByEmail: string
  readonly now: Date
  readonly expiresAt: Date
}

/** The secret itself is not stored. The caller has checked the limit, see `lockPendingInvitations`. */
export async function createInvitation(tx: Transaction<Tables>, invitation: NewInvitation): Promise<InvitationRow> {
  await tx
    .insertInto('invitation')
    .values({
      id: invitation.id,
      account_id: invitation.accountId,
      email: invitation.email,
      role: invitation.role,
      state: 'pending',
      secret_hash: hashSecret(invitation.secret),
      invited_by_email: invitation.invitedByEmail,
      created_at: invitation.now,
      expires_at: invitation.expiresAt,
    })
    .execute()
  return camelRow(await selectInvitations(tx).where('invitation.id', '=', invitation.id).executeTakeFirstOrThrow())
}

/** Newest first: every pending one, and others created since `since`. */
export async function listInvitations(
  queries: Queries,
  accountId: string,
  since: Date,
  now: Date,
): Promise<InvitationRow[]> {
  const rows = await selectInvitations(queries)
    .where('invitation.account_id', '=', accountId)
    .where((where) =>
      where.or([
        where('invitation.created_at', '>', since),
        where.and([where('invitation.state', '=', 'pending'), where('invitation.expires_at', '>', now)]),
      ]),
    )
    .orderBy('invitation.created_at', 'desc')
    .orderBy('invitation.id', 'desc')
    .execute()
  return rows.map(camelRow)
}

/** Invitations of the account that can still be accepted; locks the account's row, so that two requests cannot both
 *  take the last place. */
export async function lockPendingInvitations(
  tx: Transaction<Tables>,
  accountId: string,
  now: Date,
): Promise<InvitationRow[]> {
  await selectWhere(tx, 'account', { id: accountId }).select('id').forUpdate().executeTakeFirstOrThrow()
  return (
    await selectInvitations(tx)
      .where('invitation.account_id', '=', accountId)
      .where('invitation.state', '=', 'pending')
      .where('invitation.expires_at', '>', now)
      .execute()
  ).map(camelRow)
}

/** The account's invitation, locked until the transaction ends. */
export async function lockInvitation(
  tx: Transaction<Tables>,
  accountId: string,
  id: string,
): Promise<InvitationRow | undefined> {
  const row = await selectInvitations(tx)
    .where('invitation.account_id', '=', accountId)
    .where('invitation.id', '=', id)
    .forUpdate('invitation')
    .executeTakeFirst()
  return row && camelRow(row)
}

/** The invitation with that secret. */
export async function findInvitation(queries: Queries, secret: string): Promise<InvitationRow | undefined> {
  const row = await selectInvitations(queries)
    .where('invitation.secret_hash', '=', hashSecret(secret))
    .executeTakeFirst()
  return row && camelRow(row)
}

/** The newest invitation that the address can accept now. */
export async function findPendingInvitation(
  queries: Queries,
  email: string,
  now: Date,
): Promise<InvitationRow | undefined> {
  const row = await selectInvitations(queries)
    .where('invitation.email', '=', email)
    .where('invitation.state', '=', 'pending')
    .where('invitation.expires_at', '>', now)
    .orderBy('invitation.created_at', 'desc')
    .limit(1)
    .executeTakeFirst()
  return row && camelRow(row)
}

/** Replaces its secret, which makes the previous one invalid. The invitation must be locked, see `lockInvitation`. */
export async function renewInvitation(
  tx: Transaction<Tables>,
  id: string,
  secret: string,
  expiresAt: Date,
): Promise<InvitationRow> {
  await updateWhere(tx, 'invitation', { id })
    .set({ secret_hash: hashSecret(secret), expires_at: expiresAt })
    .execute()
  return camelRow(await selectInvitations(tx).where('invitation.id', '=', id).executeTakeFirstOrThrow())
}

/** Ends a pending invitation. Returns false when it was no longer pending. */
export async function decideInvitation(
  tx: Transaction<Tables>,
  id: string,
  state: 'accepted' | 'revoked',
  now: Date,
): Promise<boolean> {
  const updated = await updateWhere(tx, 'invitation', { id, state: 'pending' })
    .set({ state, decided_at: now })
    .executeTakeFirst()
  return updated.numUpdatedRows === 1n
}

/** The emails of users by their ids, whether they are members or have left. */
export async function emailsOf(queries: Queries, userIds: readonly string[]): Promise<ReadonlyMap<string, string>> {
  if (userIds.length === 0) return new Map()
  const rows = await queries.selectFrom('app_user').select(['id', 'email']).where('id', 'in', userIds).execute()
  return new Map(rows.map(({ id, email }) => [id, email]))
}
