/** Organisations: the platform's statements about their members, and the accounts that belong to them. */
import type { Transaction } from 'kysely'
import { isAdministrator, roleOfPlatform, type StatedOrganisation } from '../../domain/account/organisations.ts'
import type { Role } from '../../domain/permissions.ts'
import { addMember } from './accounts.ts'
import { removeMembership, setRole } from './members.ts'
import type { Queries } from '../kit/open.ts'
import type { Tables } from '../tables.ts'
import { deleteWhere, selectWhere, updateWhere } from '../kit/where.ts'
import { camelRow } from '../kit/row.ts'

export interface StatementRow {
  readonly organisationId: string
  readonly organisationName: string
  /** The account of the organisation, when it has one. */
  readonly accountId: string | null
  readonly linkedAt: Date | null
  /** A workspace sync created the account, for another account's use. */
  readonly isSynced: boolean
  readonly userId: string
  readonly email: string
  readonly platformRole: string
  readonly confirmedAt: Date
  /** False: the platform no longer lists the person, who keeps the owner seat. */
  readonly isListed: boolean
}

const selectStatements = (queries: Queries) =>
  queries
    .selectFrom('organisation_membership as statement')
    .innerJoin('organisation', 'organisation.id', 'statement.organisation_id')
    .innerJoin('app_user', 'app_user.id', 'statement.user_id')
    .select([
      'organisation.id as organisation_id',
      'organisation.name as organisation_name',
      'organisation.account_id',
      'organisation.linked_at',
      'organisation.is_synced',
      'statement.user_id',
      'app_user.email',
      'statement.platform_role',
      'statement.confirmed_at',
      'statement.is_listed',
    ])

/** The platform's statements about the person, by name of the organisation. */
export async function listStatements(queries: Queries, userId: string): Promise<StatementRow[]> {
  return (
    await selectStatements(queries)
      .where('statement.user_id', '=', userId)
      .orderBy('organisation.name')
      .orderBy('organisation.id')
      .execute()
  ).map(camelRow)
}

/** The platform's statements about all people in the organisation of the account. */
export async function listOrganisationMembers(queries: Queries, accountId: string): Promise<StatementRow[]> {
  return (
    await selectStatements(queries).where('organisation.account_id', '=', accountId).orderBy('app_user.email').execute()
  ).map(camelRow)
}

/** Replaces the platform's statements about the person. Organisations that have an account admit them with their role;
 *  an administrator becomes an owner when the account has none. A person who is no longer listed is removed, except an
 *  owner. */
export async function stateOrganisations(
  tx: Transaction<Tables>,
  userId: string,
  stated: readonly StatedOrganisation[],
  now: Date,
): Promise<void> {
  for (const { id, name, platformRole } of stated) {
    await tx
      .insertInto('organisation')
      .values({ id, name })
      .onConflict((conflict) => conflict.column('id').doUpdateSet({ name }))
      .execute()
    const statement = {
      platform_role: platformRole,
      role: roleOfPlatform(platformRole),
      confirmed_at: now,
      is_listed: true,
    }
    await tx
      .insertInto('organisation_membership')
      .values({ organisation_id: id, user_id: userId, ...statement })
      .onConflict((conflict) => conflict.columns(['organisation_id', 'user_id']).doUpdateSet(statement))
      .execute()
    const { account_id: accountId } = await selectWhere(tx, 'organisation', { id })
      .select('account_id')
      .executeTakeFirstOrThrow()
    if (accountId !== null) await seat(tx, { accountId, userId, platformRole, now })
  }
  for (const row of await listStatements(tx, userId)) {
    if (stated.some(({ id }) => id === row.organisationId)) continue
    const role = row.accountId === null ? undefined : await roleIn(tx, row.accountId, userId)
    if (role === 'owner') {
      await updateWhere(tx, 'organisation_membership', { organisation_id: row.organisationId, user_id: userId })
        .set({ is_listed: false })
        .execute()
      continue
    }
    await deleteWhere(tx, 'organisation_membership', {
      organisation_id: row.organisationId,
      user_id: userId,
    }).execute()
    if (row.accountId !== null && role !== undefined) await removeMembership(tx, row.accountId, userId, now)
  }
}

const roleIn = async (queries: Queries, accountId: string, userId: string): Promise<Role | undefined> =>
  (
    await selectWhere(queries, 'membership', { account_id: accountId, user_id: userId })
      .select('role')
      .executeTakeFirst()
  )?.role

/** Adds the person to the organisation's account with the role that follows from the platform's role. */
export async function seat(
  tx: Transaction<Tables>,
  seating: { readonly accountId: string; readonly userId: string; readonly platformRole: string; readonly now: Date },
): Promise<Role> {
  const { accountId, userId, platformRole, now } = seating
  await selectWhere(tx, 'account', { id: accountId }).select('id').forUpdate().executeTakeFirstOrThrow()
  const owner = await selectWhere(tx, 'membership', { account_id: accountId, role: 'owner' })
    .select('user_id')
    .executeTakeFirst()
  const role: Role =
    owner?.user_id === userId || (owner === undefined && isAdministrator(platformRole))
      ? 'owner'
      : roleOfPlatform(platformRole)
  const before = await roleIn(tx, accountId, userId)
  if (before === undefined) await addMember(tx, { accountId, userId, role, now })
  else if (before !== role) await setRole(tx, accountId, userId, role)
  return role
}

/** Links the organisation to an account. Returns false when either is linked already. */
export async function linkOrganisation(
  tx: Transaction<Tables>,
  organisationId: string,
  accountId: string,
  now: Date,
): Promise<boolean> {
  await selectWhere(tx, 'account', { id: accountId }).select('id').forUpdate().executeTakeFirstOrThrow()
  const other = await selectWhere(tx, 'organisation', { account_id: accountId }).select('id').executeTakeFirst()
  if (other !== undefined) return false
  const updated = await updateWhere(tx, 'organisation', { id: organisationId, is_synced: false })
    .set({ account_id: accountId, linked_at: now })
    .where('account_id', 'is', null)
    .executeTakeFirst()
  return updated.numUpdatedRows === 1n
}

/** The organisation that the account belongs to; undefined when there is none. */
export async function findOrganisationOf(queries: Queries, accountId: string): Promise<string | undefined> {
  const row = await selectWhere(queries, 'organisation', { account_id: accountId }).select('id').executeTakeFirst()
  return row?.id
}

/** Whether the platform manages the person's role in the account. */
export async function isOrganisationManaged(queries: Queries, accountId: string, userId: string): Promise<boolean> {
  const row = await queries
    .selectFrom('organisation_membership as statement')
    .innerJoin('organisation', 'organisation.id', 'statement.organisation_id')
    .select('organisation.id')
    .where('organisation.account_id', '=', accountId)
    .where('statement.user_id', '=', userId)
    .where('statement.is_listed', '=', true)
    .executeTakeFirst()
  return row !== undefined
}

export interface MembershipRow {
  readonly accountId: string
  readonly accountName: string
  readonly role: Role
}

/** Every account that the person belongs to, by name. */
export async function listMemberships(queries: Queries, userId: string): Promise<MembershipRow[]> {
  const rows = await queries
    .selectFrom('membership')
    .innerJoin('account', 'account.id', 'membership.account_id')
    .select(['account.id', 'account.name', 'membership.role'])
    .where('membership.user_id', '=', userId)
    .orderBy('account.name')
    .orderBy('account.id')
    .execute()
  return rows.map((row) => ({ accountId: row.id, accountName: row.name, role: row.role }))
}
