/** Members and invitations: who belongs to an account, and how they join and leave. */
import {
  badField,
  conflict,
  nameTaken,
  forbidden,
  notFound,
  quotaExceeded,
  rateLimited,
  unavailable,
} from '../../../domain/problem.ts'
import { EMAIL_LOCKOUT } from '../../../domain/identity/lockout.ts'
import { acceptPassword, normalizePassword } from '../../../domain/identity/password.ts'
import { isUuid } from '../../../domain/uuid.ts'
import {
  addMember,
  createInvitation,
  decideInvitation,
  findInvitation,
  findUserByEmail,
  type InvitationRow,
  isOrganisationManaged,
  listInvitations,
  listMembers,
  lockInvitation,
  lockMember,
  lockPendingInvitations,
  lockUser,
  type MemberRow,
  proveAddress,
  removeMembership,
  renewInvitation,
  setActiveAccount,
  setRole,
} from '../../../db/account/index.ts'
import { appendAudit } from '../../../db/audit/index.ts'
import { beginAttempt, forgetAttempts } from '../../../db/identity/index.ts'
import { keepLanguage } from '../../identity/language.ts'
import type { Queries } from '../../../db/kit/open.ts'
import { enqueueMail } from '../../../db/mail/index.ts'
import type { Answer, Call, Customer } from '../../../kit/http/call.ts'
import { customerEndpoint, type Endpoint, publicEndpoint } from '../../../kit/http/endpoint.ts'
import type { Route } from '../../../kit/http/route.ts'
import { newUuid } from '../../../kit/sys/random.ts'
import * as routes from '../../../resources/member/index.ts'
import { auditEntry, auditEntryOf, userActor } from '../../kit/change/audit.ts'
import type { IdentityParts } from '../../identity/parts.ts'
import { answerSignIn } from '../../identity/sign-in-answer.ts'
import { emailSubject } from '../../identity/subjects.ts'
import { mail } from '../../../domain/mail/mails.ts'
import { completeList } from '../../kit/list/page.ts'
import { viewOf } from '../../../resources/kit/view.ts'

const SECRET_BYTES = 32
/** The format of a mailed secret; we never issued anything else. */
const SECRET = /^[\w-]{43}$/
const INVITATION_DAYS = 7
const PENDING_MAXIMUM = 50
const LISTED_DAYS = 30
const DAY_MILLISECONDS = 86_400_000

export const memberEndpoints = (parts: IdentityParts): readonly Endpoint[] => [
  customerEndpoint(routes.listMembers, async ({ caller }) =>
    completeList((await listMembers(parts.db, caller.accountId)).map((row) => memberView(row, caller))),
  ),
  customerEndpoint(routes.updateMember, (call) => changeRole(parts, call)),
  customerEndpoint(routes.removeMember, (call) => remove(parts, call)),
  customerEndpoint(routes.listInvitations, async ({ caller, now }) => {
    const rows = await listInvitations(
      parts.db,
      caller.accountId,
      new Date(now.getTime() - LISTED_DAYS * DAY_MILLISECONDS),
      now,
    )
    return completeList(rows.map((row) => invitationView(row, now)))
  }),
  customerEndpoint(routes.createInvitation, (call) => invite(parts, call)),
  customerEndpoint(routes.resendInvitation, (call) => resend(parts, call)),
  customerEndpoint(routes.revokeInvitation, (call) => revoke(parts, call)),
  publicEndpoint(routes.lookUpInvitation, (call) => lookUp(parts, call)),
  publicEndpoint(routes.acceptInvitation, (call) => accept(parts, call)),
]

const memberView = (row: MemberRow, caller: Customer) =>
  viewOf(routes.Member, row, {
    second_factor_enabled: row.hasSecondFactor,
    identity_providers: row.providers,
    is_self: row.userId === caller.userId,
  })

const isOpen = (row: InvitationRow, now: Date): boolean => row.state === 'pending' && row.expiresAt > now
const invitationView = (row: InvitationRow, now: Date) =>
  viewOf(routes.Invitation, row, { state: row.state === 'pending' && row.expiresAt <= now ? 'expired' : row.state })

async function changeRole(parts: IdentityParts, call: Call<typeof routes.updateMember, Customer>): Promise<Answer> {
  const { caller, params, body } = call
  if (!isUuid(params.user_id)) throw notFound('member')
  const member = await parts.db.transaction().execute(async (tx) => {
    const before = await lockMember(tx, caller.accountId, params.user_id)
    if (before === undefined) throw notFound('member')
    if (before === 'owner') throw forbidden('The role of the owner cannot be changed.')
    if (params.user_id === caller.userId) throw forbidden('You cannot change your own role.')
    if (await isOrganisationManaged(tx, caller.accountId, params.user_id))
      throw conflict('state_not_allowed', 'The role of this member is that of their organisation on the platform.')
    await setRole(tx, caller.accountId, params.user_id, body.role)
    await appendAudit(
      tx,
      auditEntryOf(call, {
        resourceType: 'user',
        resourceId: params.user_id,
        changes: [{ field: 'role', before, after: body.role }],
      }),
      parts,
    )
    return (await listMembers(tx, caller.accountId, params.user_id))[0]
  })
  parts.callers.forget()
  return { status: 200, body: { member: member && memberView(member, caller) } }
}

async function remove(parts: IdentityParts, call: Call<typeof routes.removeMember, Customer>): Promise<Answer> {
  const { caller, params, now } = call
  if (!isUuid(params.user_id)) throw notFound('member')
  await parts.db.transaction().execute(async (tx) => {
    const role = await lockMember(tx, caller.accountId, params.user_id)
    if (role === undefined) throw notFound('member')
    if (role === 'owner') throw forbidden('The owner cannot be removed.')
    await removeMembership(tx, caller.accountId, params.user_id, now)
    await appendAudit(
      tx,
      auditEntryOf(call, {
        resourceType: 'user',
        resourceId: params.user_id,
        changes: [{ field: 'role', before: role, after: null }],
      }),
      parts,
    )
  })
  parts.callers.forget()
  return { status: 204 }
}

const requireMail = (parts: IdentityParts): void => {
  if (!parts.canSendMail) throw unavailable('not_configured', 'This deployment sends no mail.')
}
const newInvitationSecret = (parts: IdentityParts, now: Date) => ({
  secret: parts.random.bytes(SECRET_BYTES).toString('base64url'),
  expiresAt: new Date(now.getTime() + INVITATION_DAYS * DAY_MILLISECONDS),
})

async function invite(parts: IdentityParts, call: Call<typeof routes.createInvitation, Customer>): Promise<Answer> {
  const { caller, body, now } = call
  requireMail(parts)
  const { secret, expiresAt } = newInvitationSecret(parts, now)
  const id = newUuid(parts.random)
  return await parts.db.transaction().execute(async (tx) => {
    const pending = await lockPendingInvitations(tx, caller.accountId, now)
    const members = await listMembers(tx, caller.accountId)
    const member = members.find(({ email }) => email === body.email)
    if (member !== undefined) throw nameTaken('This address is a member already.', { type: 'user', id: member.userId })
    const invited = pending.find(({ email }) => email === body.email)
    if (invited !== undefined)
      throw nameTaken('An invitation of this address is pending.', { type: 'invitation', id: invited.id })
    if (pending.length >= PENDING_MAXIMUM)
      throw quotaExceeded({ name: 'invitations', limit: PENDING_MAXIMUM, used: pending.length, requested: 1 })
    const row = await createInvitation(tx, {
      id,
      accountId: caller.accountId,
      email: body.email,
      role: body.role,
      secret,
      invitedByEmail: caller.email,
      now,
      expiresAt,
    })
    await mailInvitation(parts, tx, call, { ...row, secret })
    await appendAudit(
      tx,
      auditEntryOf(call, {
        resourceType: 'invitation',
        resourceId: id,
        detail: { email: row.email },
        changes: [{ field: 'role', before: null, after: row.role }],
      }),
      parts,
    )
    return { status: 201, body: { invitation: invitationView(row, now) } }
  })
}

/** Sends the link that accepts the invitation, in the name of the caller. */
const mailInvitation = (
  { random, origin }: IdentityParts,
  tx: Queries,
  { caller, now }: Pick<Call<Route, Customer>, 'caller' | 'now'>,
  {
    email,
    accountName,
    role,
    secret,
  }: Pick<InvitationRow, 'email' | 'accountName' | 'role'> & { readonly secret: string },
): Promise<void> =>
  enqueueMail(tx, {
    id: newUuid(random),
    recipient: email,
    mail: mail('invitation', {
      inviter: caller.email,
      account: accountName,
      role,
      link: `${origin}/accept-invitation#invitation=${secret}`,
    }),
    createdAt: now,
  })

async function resend(parts: IdentityParts, call: Call<typeof routes.resendInvitation, Customer>): Promise<Answer> {
  const { caller, params, now } = call
  requireMail(parts)
  if (!isUuid(params.id)) throw notFound('invitation')
  const { secret, expiresAt } = newInvitationSecret(parts, now)
  return await parts.db.transaction().execute(async (tx) => {
    const found = await lockInvitation(tx, caller.accountId, params.id)
    if (found === undefined) throw notFound('invitation')
    if (!isOpen(found, now)) throw conflict('state_not_allowed', 'The invitation is no longer pending.')
    const row = await renewInvitation(tx, params.id, secret, expiresAt)
    await mailInvitation(parts, tx, call, { ...row, secret })
    await appendAudit(
      tx,
      auditEntryOf(call, { resourceType: 'invitation', resourceId: params.id, detail: { email: row.email } }),
      parts,
    )
    return { status: 200, body: { invitation: invitationView(row, now) } }
  })
}

async function revoke(parts: IdentityParts, call: Call<typeof routes.revokeInvitation, Customer>): Promise<Answer> {
  const { caller, params, now } = call
  if (!isUuid(params.id)) throw notFound('invitation')
  await parts.db.transaction().execute(async (tx) => {
    const found = await lockInvitation(tx, caller.accountId, params.id)
    if (found === undefined) throw notFound('invitation')
    if (!isOpen(found, now) || !(await decideInvitation(tx, params.id, 'revoked', now)))
      throw conflict('state_not_allowed', 'The invitation is no longer pending.')
    await appendAudit(
      tx,
      auditEntryOf(call, { resourceType: 'invitation', resourceId: params.id, detail: { email: found.email } }),
      parts,
    )
  })
  return { status: 204 }
}

const findBySecret = async (parts: IdentityParts, secret: string): Promise<InvitationRow | undefined> => {
  if (!SECRET.test(secret)) throw badField('invitation', 'is not an invitation')
  return await findInvitation(parts.db, secret)
}

async function lookUp(parts: IdentityParts, { query, now }: Call<typeof routes.lookUpInvitation>): Promise<Answer> {
  const row = await findBySecret(parts, query.invitation)
  if (row === undefined || !isOpen(row, now)) throw notFound('invitation')
  return {
    status: 200,
    body: { email: row.email, role: row.role, account_name: row.accountName, expires_at: row.expiresAt.toISOString() },
  }
}

async function accept(
  parts: IdentityParts,
  { body, request, now }: Call<typeof routes.acceptInvitation>,
): Promise<Answer> {
  const { db, passwords } = parts
  const row = await findBySecret(parts, body.invitation)
  if (row?.state === 'accepted') throw conflict('state_not_allowed', 'The invitation was accepted already.')
  if (row === undefined || !isOpen(row, now)) throw notFound('invitation')
  const known = await findUserByEmail(db, row.email)
  if (known !== undefined) {
    const waitSeconds = await beginAttempt(db, emailSubject(row.email), EMAIL_LOCKOUT, now)
    if (waitSeconds > 0) throw rateLimited(waitSeconds, 'Too many failed attempts to sign in. Wait, then try again.')
    if (!(await passwords.verify(known.password_hash, normalizePassword(body.password))))
      throw badField('password', 'is not the password of the user with this address')
    await forgetAttempts(db, emailSubject(row.email))
    if (known.disabled_at !== null) throw forbidden('This user is disabled. Contact support.')
  }
  const passwordHash = known === undefined ? await passwords.hash(acceptPassword(body.password, row.email)) : null
  const user = await db.transaction().execute(async (tx) => {
    const id = known?.id ?? newUuid(parts.random)
    if (!(await decideInvitation(tx, row.id, 'accepted', now)))
      throw conflict('state_not_allowed', 'The invitation is no longer pending.')
    if (known === undefined) {
      const added = await tx
        .insertInto('app_user')
        .values({
          id,
          email: row.email,
          name: null,
          password_hash: passwordHash,
          email_verified_at: now,
          own_account_id: null,
          active_account_id: row.accountId,
          created_at: now,
        })
        .onConflict((insert) => insert.column('email').doNothing())
        .executeTakeFirst()
      if (added.numInsertedOrUpdatedRows === 0n)
        throw conflict('state_not_allowed', 'The address got a user just now: try again with its password.')
      await keepLanguage(tx, id, request, now)
    }
    if ((await lockMember(tx, row.accountId, id)) !== undefined)
      throw conflict('state_not_allowed', 'You are a member of this account already.')
    await addMember(tx, { accountId: row.accountId, userId: id, role: row.role, now })
    await setActiveAccount(tx, id, row.accountId)
    // The person who accepts has read the mail, and knows the password.
    const user = await lockUser(tx, id)
    await proveAddress(tx, user, { now, isHolder: true })
    await appendAudit(
      tx,
      auditEntry(row.accountId, userActor({ id, email: row.email }), request, {
        action: 'account.member_joined',
        resourceType: 'user',
        resourceId: id,
        detail: { invitation_id: row.id },
        changes: [{ field: 'role', before: null, after: row.role }],
      }),
      parts,
    )
    return await lockUser(tx, id)
  })
  return await answerSignIn(parts, { user, request, endsOthers: false }, 201)
}
