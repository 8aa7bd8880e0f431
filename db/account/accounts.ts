/** Accounts, people and memberships. */
import type { Transaction } from 'kysely'
import { SIGN_UP_CREDIT_CENTS, SIGN_UP_CREDIT_DAYS } from '../../domain/billing/sign-up-credit.ts'
import type { Role } from '../../domain/permissions.ts'
import { openChain } from '../audit/index.ts'
import type { Queries } from '../kit/open.ts'
import { openQuotas } from './quotas.ts'
import type { Tables } from '../tables.ts'
import { selectWhere } from '../kit/where.ts'

const DAY_MILLISECONDS = 86_400_000

export interface NewAccount {
  readonly accountId: string
  readonly userId: string
  readonly creditId: string
  readonly accountName: string
  readonly email: string
  readonly name: string | null
  /** Null for people who sign in with an identity provider only. */
  readonly passwordHash: string | null
  readonly emailVerifiedAt: Date | null
  readonly now: Date
}

/** Creates the account with its default quotas, its owner and the sign-up credit. Returns false when the email has a
 *  user already; the transaction must then be rolled back. */
export async function createAccount(tx: Transaction<Tables>, account: NewAccount): Promise<boolean> {
  await openAccount(tx, {
    id: account.accountId,
    name: account.accountName,
    creditId: account.creditId,
    now: account.now,
  })
  const added = await tx
    .insertInto('app_user')
    .values({
      id: account.userId,
      email: account.email,
      name: account.name,
      password_hash: account.passwordHash,
      email_verified_at: account.emailVerifiedAt,
      own_account_id: account.accountId,
      active_account_id: account.accountId,
      created_at: account.now,
    })
    .onConflict((conflict) => conflict.column('email').doNothing())
    .executeTakeFirst()
  if (added.numInsertedOrUpdatedRows === 0n) return false
  await addMember(tx, { accountId: account.accountId, userId: account.userId, role: 'owner', now: account.now })
  return true
}

/** An account without people yet; with the sign-up credit when an id for it is given. */
export async function openAccount(
  tx: Transaction<Tables>,
  account: { readonly id: string; readonly name: string; readonly creditId?: string; readonly now: Date },
): Promise<void> {
  const { id, name, creditId, now } = account
  await tx.insertInto('account').values({ id, name, created_at: now }).execute()
  await openQuotas(tx, id)
  await openChain(tx, id)
  if (creditId === undefined) return
  await tx
    .insertInto('credit')
    .values({
      id: creditId,
      account_id: id,
      label: 'Sign-up credit',
      source: 'sign_up',
      amount_cents: SIGN_UP_CREDIT_CENTS,
      created_at: now,
      expires_at: new Date(now.getTime() + SIGN_UP_CREDIT_DAYS * DAY_MILLISECONDS),
    })
    .execute()
}

/** The person must not be a member yet. */
export async function addMember(
  tx: Transaction<Tables>,
  member: { readonly accountId: string; readonly userId: string; readonly role: Role; readonly now: Date },
): Promise<void> {
  await tx
    .insertInto('membership')
    .values({ account_id: member.accountId, user_id: member.userId, role: member.role, joined_at: member.now })
    .execute()
}

export interface UserRow {
  readonly id: string
  readonly email: string
  readonly name: string | null
  readonly password_hash: string | null
  readonly password_generation: number
  readonly email_verified_at: Date | null
  readonly disabled_at: Date | null
  readonly own_account_id: string | null
  readonly active_account_id: string
}

const USER_COLUMNS = [
  'id',
  'email',
  'name',
  'password_hash',
  'password_generation',
  'email_verified_at',
  'disabled_at',
  'own_account_id',
  'active_account_id',
] as const

/** `email` in the stored form: in lower case. */
export async function findUserByEmail(queries: Queries, email: string): Promise<UserRow | undefined> {
  return await selectWhere(queries, 'app_user', { email }).select(USER_COLUMNS).executeTakeFirst()
}

/** Undefined for an unknown id; disabled people are found too. */
export async function findUser(queries: Queries, id: string): Promise<UserRow | undefined> {
  return await selectWhere(queries, 'app_user', { id }).select(USER_COLUMNS).executeTakeFirst()
}

/** The person's row, locked until the transaction ends: serializes what must not happen twice at once for one person.
 */
export async function lockUser(tx: Transaction<Tables>, id: string): Promise<UserRow> {
  return await selectWhere(tx, 'app_user', { id }).select(USER_COLUMNS).forUpdate().executeTakeFirstOrThrow()
}

/** Undefined when there is no such account. */
export async function findAccountName(queries: Queries, accountId: string): Promise<string | undefined> {
  const row = await selectWhere(queries, 'account', { id: accountId }).select('name').executeTakeFirst()
  return row?.name
}

/** The role that the person holds in the account; undefined when not a member. */
export async function findRole(queries: Queries, accountId: string, userId: string): Promise<Role | undefined> {
  return (
    await selectWhere(queries, 'membership', { account_id: accountId, user_id: userId })
      .select('role')
      .executeTakeFirst()
  )?.role
}
