/** Actions of staff on accounts and people. */
import { badField, conflict, forbidden, notFound } from '../../../domain/problem.ts'
import { isUuid } from '../../../domain/uuid.ts'
import {
  addCredit,
  creditBalance,
  findUser,
  listCredits,
  listMembers,
  setQuotaLimit,
} from '../../../db/account/index.ts'
import { STAFF_CHAIN, verifyAudit } from '../../../db/audit/index.ts'
import { endSessionsOfUser, removeSecondFactor } from '../../../db/identity/index.ts'
import {
  type AccountRow,
  endSupportSession,
  issueSupportSession,
  listAccounts,
  listOpenSupportSessions,
  listStaffAudit,
  lockLiveConsent,
  setSuspension,
  SUPPORT_SESSION_SECONDS,
} from '../../../db/staff/index.ts'
import type { Answer, Call, Operator } from '../../../kit/http/call.ts'
import { type Endpoint, operatorEndpoint } from '../../../kit/http/endpoint.ts'
import type { Route } from '../../../kit/http/route.ts'
import { newUuid } from '../../../kit/sys/random.ts'
import { viewOf } from '../../../resources/kit/view.ts'
import * as routes from '../../../resources/staff/index.ts'
import type { IdentityParts } from '../../identity/parts.ts'
import { auditStaff } from '../../kit/change/staff-audit.ts'
import { answerOf, completeList, pageOfRows, readPage, readPageByTime } from '../../kit/list/page.ts'
import { integrityView, readTestimony } from '../audit/index.ts'
import { creditView } from '../credit/index.ts'
import { impersonationView } from '../support/index.ts'

const CODE_SECONDS = 120
const SECRET_BYTES = 32
const requireUuid = (text: string, noun: string): string => {
  if (!isUuid(text)) throw notFound(noun)
  return text
}

export const staffAccountEndpoints = (parts: IdentityParts): readonly Endpoint[] => [
  operatorEndpoint(routes.listAccountsAsStaff, (call) => list(parts, call)),
  operatorEndpoint(routes.getAccountAsStaff, async ({ params }) => ({
    status: 200,
    body: await accountView(parts, params.account_id),
  })),
  operatorEndpoint(routes.suspendAccount, (call) => suspend(parts, call, call.body.reason)),
  operatorEndpoint(routes.unsuspendAccount, (call) => suspend(parts, call, undefined)),
  operatorEndpoint(routes.listAccountMembers, (call) => listPeople(parts, call)),
  operatorEndpoint(routes.listAccountCredits, async (call) => {
    const { id: accountId } = await accountView(parts, call.params.account_id)
    return await pageOfRows(
      parts,
      call,
      (after, limit) => listCredits(parts.db, { accountId, after, limit }),
      (credits) => credits.map((credit) => creditView(credit, call.now)),
    )
  }),
  operatorEndpoint(routes.grantCredit, (call) => grantCredit(parts, call)),
  operatorEndpoint(routes.revokeCredit, (call) => revokeCredit(parts, call)),
  operatorEndpoint(routes.setAccountQuota, (call) => setQuota(parts, call)),
  operatorEndpoint(routes.disableUser, (call) => setDisabled(parts, call, true)),
  operatorEndpoint(routes.enableUser, (call) => setDisabled(parts, call, false)),
  operatorEndpoint(routes.resetUserSecondFactor, (call) => resetSecondFactor(parts, call)),
  operatorEndpoint(routes.createSupportSession, (call) => openSupport(parts, call)),
  operatorEndpoint(routes.listSupportSessions, async ({ now }) => ({
    status: 200,
    body: {
      items: (await listOpenSupportSessions(parts.db, now)).map((row) => ({
        id: row.id,
        account_id: row.accountId,
        staff_email: row.staffEmail,
        mode: row.mode,
        reason: row.reason,
        ticket: row.ticket,
        created_at: row.createdAt.toISOString(),
        redeemed_at: row.redeemedAt?.toISOString() ?? null,
        expires_at: row.expiresAt.toISOString(),
      })),
      next_cursor: null,
    },
  })),
  operatorEndpoint(routes.endSupportSession, (call) => endSupport(parts, call)),
  operatorEndpoint(routes.listStaffAuditEntries, (call) => listAudit(parts, call)),
  operatorEndpoint(routes.verifyAuditChain, (call) => verifyChain(parts, call)),
]

async function toView(parts: IdentityParts, row: AccountRow) {
  const { id, name, owner_email, member_count, requires_second_factor } = row
  return {
    id,
    name,
    created_at: row.created_at.toISOString(),
    owner_email,
    member_count,
    suspended_for_payment_at: row.suspended_for_payment_at?.toISOString() ?? null,
    suspended_by_staff_at: row.suspended_by_staff_at?.toISOString() ?? null,
    requires_second_factor,
    credit_balance_cents: await creditBalance(parts.db, id, parts.clock.now()),
  }
}

async function accountView(parts: IdentityParts, id: string) {
  const [row] = await listAccounts(parts.db, { id: requireUuid(id, 'account'), limit: 1 })
  if (row === undefined) throw notFound('account')
  return await toView(parts, row)
}

async function list(parts: IdentityParts, call: Call<typeof routes.listAccountsAsStaff, Operator>): Promise<Answer> {
  const { id, email, name, q } = call.query
  const page = await readPageByTime(
    parts.cursors,
    call,
    (after, limit) => listAccounts(parts.db, { id, email, name, q, after, limit }),
    (row) => ({ createdAt: row.created_at, id: row.id }),
    { viewsOf: (rows) => Promise.all(rows.map((row) => toView(parts, row))) },
  )
  return answerOf(page)
}

type AccountCall = Pick<Call<Route, Operator>, 'caller' | 'request' | 'now' | 'route'> & {
  readonly params: { readonly account_id: string }
}

/** Suspends with a reason, unsuspends without one. */
async function suspend(parts: IdentityParts, call: AccountCall, reason: string | undefined): Promise<Answer> {
  const { id } = await accountView(parts, call.params.account_id)
  await parts.db.transaction().execute(async (tx) => {
    if (!(await setSuspension(tx, id, reason === undefined ? null : call.now)))
      throw conflict(
        'state_not_allowed',
        reason === undefined ? 'The account is not suspended by staff.' : 'The account is suspended by staff already.',
      )
    const action = reason === undefined ? 'account.unsuspended' : 'account.suspended'
    await auditStaff(tx, parts, call, { action, resourceId: id, detail: reason === undefined ? {} : { reason } }, [id])
  })
  return { status: 200, body: await accountView(parts, id) }
}

/** Staff act on people by their ids. The customer sees who read them. */
async function listPeople(
  parts: IdentityParts,
  call: Call<typeof routes.listAccountMembers, Operator>,
): Promise<Answer> {
  const { id } = await accountView(parts, call.params.account_id)
  const members = await parts.db.transaction().execute(async (tx) => {
    const rows = await listMembers(tx, id)
    await auditStaff(tx, parts, call, { action: 'account.members_read', resourceId: id }, [id])
    return rows
  })
  return completeList(
    members.map((row) => viewOf(routes.AccountMember, row, { second_factor_enabled: row.hasSecondFactor })),
  )
}

async function grantCredit(parts: IdentityParts, call: Call<typeof routes.grantCredit, Operator>): Promise<Answer> {
  const { body, now } = call
  const { id: accountId } = await accountView(parts, call.params.account_id)
  const expiresAt = body.expires_at == null ? null : new Date(body.expires_at)
  if (expiresAt !== null && expiresAt <= now) throw badField('expires_at', 'must be in the future')
  return await parts.db.transaction().execute(async (tx) => {
    const credit = await addCredit(tx, {
      id: newUuid(parts.random),
      accountId,
      label: body.label,
      source: 'staff',
      amountCents: body.amount_cents,
      now,
      expiresAt,
    })
    await auditStaff(
      tx,
      parts,
      call,
      {
        action: 'account.credit_granted',
        resourceType: 'credit',
        resourceId: credit.id,
        detail: { label: body.label, amount_cents: String(body.amount_cents) },
      },
      [accountId],
    )
    return { status: 201, body: { credit: creditView(credit, now) } }
  })
}

async function revokeCredit(parts: IdentityParts, call: Call<typeof routes.revokeCredit, Operator>): Promise<Answer> {
  const { id: accountId } = await accountView(parts, call.params.account_id)
  const id = requireUuid(call.params.id, 'credit')
  await parts.db.transaction().execute(async (tx) => {
    const row = await tx
      .selectFrom('credit')
      .select(['revoked_at'])
      .where('account_id', '=', accountId)
      .where('id', '=', id)
      .forUpdate()
      .executeTakeFirst()
    if (row === undefined) throw notFound('credit')
    if (row.revoked_at !== null) throw conflict('state_not_allowed', 'The credit is revoked already.')
    await tx.updateTable('credit').set({ revoked_at: call.now }).where('id', '=', id).execute()
    await auditStaff(tx, parts, call, { action: 'account.credit_revoked', resourceType: 'credit', resourceId: id }, [
      accountId,
    ])
  })
  return { status: 204 }
}

async function setQuota(parts: IdentityParts, call: Call<typeof routes.setAccountQuota, Operator>): Promise<Answer> {
  const { params, body } = call
  const { id: accountId } = await accountView(parts, params.account_id)
  return await parts.db.transaction().execute(async (tx) => {
    const before = await setQuotaLimit(tx, { accountId, name: params.name, limit: body.limit })
    await auditStaff(
      tx,
      parts,
      call,
      {
        action: 'account.quota_changed',
        resourceType: 'quota',
        resourceId: params.name,
        changes: [{ field: 'limit', before: before.limit, after: body.limit }],
      },
      [accountId],
    )
    return { status: 200, body: { name: params.name, limit: body.limit, used: before.used, scope: 'account' } }
  })
}

type UserCall = Pick<Call<Route, Operator>, 'caller' | 'request' | 'now' | 'route'> & {
  readonly params: { readonly user_id: string }
  readonly body: { readonly reason: string }
}

async function setDisabled(parts: IdentityParts, call: UserCall, isDisabled: boolean): Promise<Answer> {
  const id = requireUuid(call.params.user_id, 'user')
  await parts.db.transaction().execute(async (tx) => {
    const user = await findUser(tx, id)
    if (user === undefined) throw notFound('user')
    const updated = await tx
      .updateTable('app_user')
      .set({ disabled_at: isDisabled ? call.now : null })
      .where('id', '=', id)
      .where('disabled_at', isDisabled ? 'is' : 'is not', null)
      .executeTakeFirst()
    if (updated.numUpdatedRows === 0n)
      throw conflict('state_not_allowed', isDisabled ? 'The user is disabled already.' : 'The user is not disabled.')
    if (isDisabled) await endSessionsOfUser(tx, id, call.now)
    await auditStaff(
      tx,
      parts,
      call,
      { action: isDisabled ? 'user.disabled' : 'user.enabled', resourceId: id, detail: { reason: call.body.reason } },
      [user.active_account_id],
    )
  })
  parts.callers.forget()
  return { status: 204 }
}

async function resetSecondFactor(parts: IdentityParts, call: UserCall): Promise<Answer> {
  const id = requireUuid(call.params.user_id, 'user')
  await parts.db.transaction().execute(async (tx) => {
    const user = await findUser(tx, id)
    if (user === undefined) throw notFound('user')
    const factor = await tx
      .selectFrom('second_factor')
      .select('user_id')
      .where('user_id', '=', id)
      .forUpdate()
      .executeTakeFirst()
    if (factor === undefined) throw conflict('state_not_allowed', 'The user has no second factor.')
    await removeSecondFactor(tx, id)
    await endSessionsOfUser(tx, id, call.now)
    await auditStaff(
      tx,
      parts,
      call,
      { action: 'user.second_factor_reset', resourceId: id, detail: { reason: call.body.reason } },
      [user.active_account_id],
    )
  })
  parts.callers.forget()
  return { status: 204 }
}

async function openSupport(
  parts: IdentityParts,
  call: Call<typeof routes.createSupportSession, Operator>,
): Promise<Answer> {
  const { caller, body, now, params } = call
  const { staff } = caller
  if (staff === undefined) throw forbidden('Support sessions are opened by people of the staff.')
  const { id: accountId } = await accountView(parts, params.account_id)
  const owner = await parts.db
    .selectFrom('membership')
    .select('user_id')
    .where('account_id', '=', accountId)
    .where('role', '=', 'owner')
    .executeTakeFirst()
  if (owner === undefined) throw conflict('state_not_allowed', 'The account has no owner yet.')
  const code = parts.random.bytes(SECRET_BYTES).toString('base64url')
  const codeExpiresAt = new Date(now.getTime() + CODE_SECONDS * 1000)
  const session = await parts.db.transaction().execute(async (tx) => {
    const consent = await lockLiveConsent(tx, accountId, body.mode, now)
    if (consent === undefined && (body.mode === 'elevated' || parts.needsReadOnlyConsent))
      throw forbidden('The account has no live consent for this mode.')
    if ((await listOpenSupportSessions(tx, now, accountId)).length > 0)
      throw conflict('state_not_allowed', 'A support session of this account is open already.')
    const latest = new Date(now.getTime() + SUPPORT_SESSION_SECONDS * 1000)
    const issued = {
      id: newUuid(parts.random),
      accountId,
      userId: owner.user_id,
      consentId: consent?.id ?? null,
      staffId: staff.id,
      staffEmail: staff.email,
      staffName: staff.name,
      mode: body.mode,
      reason: body.reason,
      ticket: body.ticket ?? null,
      code,
      codeExpiresAt,
      createdAt: now,
      expiresAt: consent !== undefined && consent.expiresAt < latest ? consent.expiresAt : latest,
    }
    await issueSupportSession(tx, issued)
    await auditStaff(
      tx,
      parts,
      call,
      {
        action: 'support.session_issued',
        resourceType: 'support_session',
        resourceId: issued.id,
        detail: {
          support_mode: body.mode,
          support_reason: body.reason,
          ...(body.ticket == null ? {} : { ticket: body.ticket }),
        },
      },
      [accountId],
    )
    return issued
  })
  return {
    status: 201,
    body: {
      code,
      handoff_url: `${parts.origin}/support/handoff#code=${code}`,
      expires_at: codeExpiresAt.toISOString(),
      impersonation: impersonationView(session),
    },
  }
}

async function endSupport(
  parts: IdentityParts,
  call: Call<typeof routes.endSupportSession, Operator>,
): Promise<Answer> {
  const id = requireUuid(call.params.id, 'support session')
  await parts.db.transaction().execute(async (tx) => {
    const ended = await endSupportSession(tx, id, call.now)
    if (ended === undefined) throw notFound('support session')
    await auditStaff(
      tx,
      parts,
      call,
      {
        action: 'support.session_ended',
        resourceType: 'support_session',
        resourceId: id,
        detail: { support_mode: ended.mode, support_reason: ended.reason },
      },
      [ended.accountId],
    )
  })
  parts.callers.forget()
  return { status: 204 }
}

async function listAudit(
  parts: IdentityParts,
  call: Call<typeof routes.listStaffAuditEntries, Operator>,
): Promise<Answer> {
  const { account_id: accountId, action, from, to } = call.query
  const instant = (text: string | undefined) => (text === undefined ? undefined : new Date(text))
  const page = await readPage(
    parts.cursors,
    call,
    (after, limit) => {
      const before = after === undefined ? undefined : Number(after.sortKey)
      const actions = action === undefined ? undefined : [action]
      return listStaffAudit(parts.db, { actions, from: instant(from), to: instant(to), before, limit })
    },
    ({ sequence, id }) => ({ sortKey: String(sequence), id }),
    {
      viewsOf: (entries) => entries,
      matches: accountId === undefined ? undefined : (entry) => entry.account_id === accountId,
    },
  )
  return answerOf(page)
}

async function verifyChain(
  parts: IdentityParts,
  call: Call<typeof routes.verifyAuditChain, Operator>,
): Promise<Answer> {
  const { account_id: accountId } = call.body
  const id = accountId === undefined ? STAFF_CHAIN : (await accountView(parts, accountId)).id
  // Recorded before the chain is verified, because this entry may belong to that chain.
  const resource = accountId === undefined ? {} : { resourceType: 'account', resourceId: id }
  await parts.db.transaction().execute((tx) => auditStaff(tx, parts, call, { action: 'audit.verify', ...resource }))
  // Without the store's checkpoints, a chain that was completely rewritten would be reported as intact.
  const testimony = await readTestimony(parts)
  const integrity = await verifyAudit(parts.db, id, parts.clock, testimony?.heads.get(id))
  return { status: 200, body: { ...integrityView(integrity), checkpoint_at: testimony?.at?.toISOString() ?? null } }
}
