/** Accounts of a person, and organisations of the identity platform that have accounts here. */
import * as routes from '../../../resources/organisation/index.ts'
import { isAdministrator, isStale, roleOfPlatform } from '../../../domain/account/organisations.ts'
import { conflict, forbidden, notFound, unavailable } from '../../../domain/problem.ts'
import {
  type MembershipRow,
  type StatementRow,
  findUser,
  linkOrganisation,
  listMembers,
  listMemberships,
  listOrganisationMembers,
  listStatements,
  openAccount,
  seat,
  setActiveAccount,
} from '../../../db/account/index.ts'
import { appendAudit } from '../../../db/audit/index.ts'
import { mayActFor } from '../../../db/identity/index.ts'
import type { Answer, Call, Customer } from '../../../kit/http/call.ts'
import { type Endpoint, customerEndpoint } from '../../../kit/http/endpoint.ts'
import { newUuid } from '../../../kit/sys/random.ts'
import { auditEntryOf } from '../../kit/change/audit.ts'
import { openNamespace } from '../../kit/change/namespaces.ts'
import type { IdentityParts } from '../../identity/parts.ts'
import { noun } from '../../kit/noun.ts'

const organisationEndpoints = (parts: IdentityParts): readonly Endpoint[] => [
  customerEndpoint(routes.getAccountOrganisation, async (call) => ({
    status: 200,
    body: await organisationView(parts, call.caller, call.now),
  })),
  customerEndpoint(routes.linkAccountOrganisation, (call) => link(parts, call)),
  customerEndpoint(routes.listAccounts, (call) => list(parts, call)),
  customerEndpoint(routes.switchAccount, (call) => switchTo(parts, call)),
]

const platformOf = (parts: IdentityParts) =>
  parts.providers
    .map(({ configuration }) => configuration)
    .find(({ organisations_claim: claim }) => claim !== undefined)
const signInWithPlatform = () =>
  forbidden(
    'Sign in with your platform account first: what it said about your organisations is older than an hour.',
    'sign_in_with_platform_required',
  )

const secondFactorRequired = () =>
  forbidden('This account asks for a second factor: sign in again, with yours.', 'second_factor_required')

const membershipView = (statement: StatementRow, activeAccountId: string, now: Date) => ({
  organisation: { id: statement.organisationId, name: statement.organisationName },
  platform_role: statement.platformRole,
  role: roleOfPlatform(statement.platformRole),
  is_current: statement.accountId === activeAccountId,
  is_stale: isStale(statement.confirmedAt, now),
  confirmed_at: statement.confirmedAt.toISOString(),
  ...(statement.accountId === null || needsSignIn(statement, now) ? {} : { account_id: statement.accountId }),
})

/** Whether the identity platform must confirm it again: the statement is too old, or from before the account was
 *  linked. */
const needsSignIn = (statement: StatementRow, now: Date): boolean =>
  isStale(statement.confirmedAt, now) || (statement.linkedAt !== null && statement.confirmedAt < statement.linkedAt)

async function organisationView(parts: IdentityParts, caller: Customer, now: Date) {
  const statements = await listOrganisationMembers(parts.db, caller.accountId)
  const roles = new Map((await listMembers(parts.db, caller.accountId)).map((member) => [member.userId, member.role]))
  const [any] = statements
  const owner = statements.find(({ userId }) => roles.get(userId) === 'owner')
  const isOwnAccount =
    caller.role === 'owner' && (await findUser(parts.db, caller.userId))?.own_account_id === caller.accountId
  const candidates =
    any === undefined && isOwnAccount
      ? (await listStatements(parts.db, caller.userId)).filter(
          (row) =>
            row.isListed &&
            isAdministrator(row.platformRole) &&
            row.accountId === null &&
            !row.isSynced &&
            !isStale(row.confirmedAt, now),
        )
      : []
  return {
    link:
      any === undefined
        ? null
        : {
            organisation: { id: any.organisationId, name: any.organisationName },
            linked_at: (any.linkedAt ?? any.confirmedAt).toISOString(),
            confirmed_at: new Date(
              Math.max(...statements.map(({ confirmedAt }) => confirmedAt.getTime())),
            ).toISOString(),
            has_owner_seat: owner !== undefined,
            is_owner_retained: owner?.isListed === false,
          },
    members: statements.map((row) => ({
      user_id: row.userId,
      email: row.email,
      platform_role: row.platformRole,
      role: roles.get(row.userId) ?? roleOfPlatform(row.platformRole),
      is_owner: roles.get(row.userId) === 'owner',
      is_stale: isStale(row.confirmedAt, now) || !row.isListed,
      confirmed_at: row.confirmedAt.toISOString(),
    })),
    candidates: candidates.map((row) => membershipView(row, caller.accountId, now)),
    connected: platformOf(parts) !== undefined,
  }
}

async function link(
  parts: IdentityParts,
  call: Call<typeof routes.linkAccountOrganisation, Customer>,
): Promise<Answer> {
  const { caller, body, now } = call
  if (caller.role !== 'owner') throw forbidden('Only the owner of the account may link it.')
  if (platformOf(parts) === undefined)
    throw unavailable('not_configured', 'This deployment follows no platform organisations.')
  const statement = (await listStatements(parts.db, caller.userId)).find(
    ({ organisationId, isListed }) => organisationId === body.organisation_id && isListed,
  )
  if (statement === undefined || isStale(statement.confirmedAt, now)) throw signInWithPlatform()
  if (!isAdministrator(statement.platformRole))
    throw forbidden('Only an owner or administrator of the organisation may link it.')
  await parts.db.transaction().execute(async (tx) => {
    if (!(await linkOrganisation(tx, statement.organisationId, caller.accountId, now)))
      throw conflict('in_use', 'The organisation has an account already, or this account an organisation.')
    await tx
      .updateTable('invitation')
      .set({ state: 'revoked', decided_at: now })
      .where('account_id', '=', caller.accountId)
      .where('state', '=', 'pending')
      .execute()
    await appendAudit(
      tx,
      auditEntryOf(call, { resourceId: statement.organisationId, detail: { name: statement.organisationName } }),
      parts,
    )
  })
  return { status: 200, body: { link: (await organisationView(parts, caller, now)).link } }
}

const switchableView = (
  row: MembershipRow,
  statement: StatementRow | undefined,
  person: { readonly ownAccountId: string | null; readonly activeAccountId: string },
  now: Date,
) => ({
  id: row.accountId,
  name: row.accountName,
  role: row.role,
  is_own_account: row.accountId === person.ownAccountId,
  is_active: row.accountId === person.activeAccountId,
  organisation:
    statement === undefined
      ? null
      : {
          id: statement.organisationId,
          name: statement.organisationName,
          platform_role: row.accountId === person.ownAccountId ? '' : statement.platformRole,
          is_stale: isStale(statement.confirmedAt, now),
          is_owner_retained: row.role === 'owner' && !statement.isListed,
          confirmed_at: statement.confirmedAt.toISOString(),
        },
})

async function list(
  parts: IdentityParts,
  { caller, now }: Call<typeof routes.listAccounts, Customer>,
): Promise<Answer> {
  const user = await findUser(parts.db, caller.userId)
  const statements = await listStatements(parts.db, caller.userId)
  const person = { ownAccountId: user?.own_account_id ?? null, activeAccountId: caller.accountId }
  const items = (await listMemberships(parts.db, caller.userId)).map((row) =>
    switchableView(
      row,
      statements.find(({ accountId }) => accountId === row.accountId),
      person,
      now,
    ),
  )
  const platform = platformOf(parts)
  return {
    status: 200,
    body: {
      items: items.toSorted((a, b) => Number(b.is_own_account) - Number(a.is_own_account)),
      active_account_id: caller.accountId,
      organisations: statements
        .filter(({ isListed }) => isListed)
        .map((row) => membershipView(row, caller.accountId, now)),
      connected: platform !== undefined,
      create_organisation_url: platform?.create_organisation_url ?? null,
    },
  }
}

async function switchTo(parts: IdentityParts, call: Call<typeof routes.switchAccount, Customer>): Promise<Answer> {
  const { caller, body, now } = call
  const statement = (await listStatements(parts.db, caller.userId)).find((row) =>
    body.organisation_id === undefined
      ? row.accountId === body.account_id
      : row.organisationId === body.organisation_id && row.isListed,
  )
  if (body.organisation_id !== undefined) {
    if (platformOf(parts) === undefined)
      throw unavailable('not_configured', 'This deployment follows no platform organisations.')
    if (statement === undefined) throw notFound('organisation')
    if (statement.isSynced)
      throw conflict('in_use', 'A workspace sync made the account of this organisation for another account.')
  }
  let opened: string | undefined
  const account = await parts.db.transaction().execute(async (tx) => {
    const memberships = await listMemberships(tx, caller.userId)
    const accountId = body.account_id ?? statement?.accountId ?? undefined
    const before = memberships.find((row) => row.accountId === accountId)
    if (body.account_id !== undefined && before === undefined) throw notFound('account')
    if (statement !== undefined && needsSignIn(statement, now) && before?.role !== 'owner') throw signInWithPlatform()
    const target = before?.accountId ?? (statement === undefined ? undefined : await openOrganisation(tx, statement))
    if (target === undefined) throw notFound('account')
    if (caller.session === undefined || !(await mayActFor(tx, caller.session.id, target))) throw secondFactorRequired()
    await setActiveAccount(tx, caller.userId, target)
    // Both entries belong to the account that the person acts for from now on.
    const there = { ...call, caller: { ...caller, accountId: target } }
    if (before === undefined && statement?.accountId === null)
      await appendAudit(
        tx,
        auditEntryOf(there, {
          action: 'organisation.account_opened',
          resourceId: statement.organisationId,
          detail: { name: statement.organisationName },
        }),
        parts,
      )
    await appendAudit(tx, auditEntryOf(there, { resourceId: target, detail: { from: caller.accountId } }), parts)
    const row = (await listMemberships(tx, caller.userId)).find((membership) => membership.accountId === target)
    const user = await findUser(tx, caller.userId)
    return (
      row &&
      switchableView(row, statement, { ownAccountId: user?.own_account_id ?? null, activeAccountId: target }, now)
    )
  })
  if (opened !== undefined) await openNamespace(parts, opened)
  parts.callers.forget()
  return { status: 200, body: { account } }

  /** The account of the organisation, opened now when it has none; the person becomes a member of it. */
  async function openOrganisation(tx: Parameters<typeof openAccount>[0], statement: StatementRow): Promise<string> {
    const accountId = statement.accountId ?? newUuid(parts.random)
    if (statement.accountId === null) {
      await openAccount(tx, { id: accountId, name: statement.organisationName, now })
      if (!(await linkOrganisation(tx, statement.organisationId, accountId, now)))
        throw conflict('in_use', 'The account of this organisation was opened just now: try again.')
      opened = accountId
    }
    await seat(tx, { accountId, userId: caller.userId, platformRole: statement.platformRole, now })
    return accountId
  }
}

export const organisation = noun<IdentityParts>({ name: 'organisation', endpoints: organisationEndpoints })
