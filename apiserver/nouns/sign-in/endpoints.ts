/** Sign-up, sign-in with a password, sign-out, the signed-in user, and verification of the email address. One rule is
 *  the same for all of them: no answer reveals whether an address has a user, by body, status or time. */
import { badField, conflict, forbidden, rateLimited, unauthenticated, unavailable } from '../../../domain/problem.ts'
import { ADDRESS_LOCKOUT, EMAIL_LOCKOUT } from '../../../domain/identity/lockout.ts'
import { acceptPassword, normalizePassword } from '../../../domain/identity/password.ts'
import {
  createAccount,
  findUser,
  findUserByEmail,
  lockUser,
  proveAddress,
  redeemCoupon,
  type UserRow,
} from '../../../db/account/index.ts'
import { appendAudit } from '../../../db/audit/index.ts'
import {
  beginAttempt,
  endSession,
  findSession,
  forgetAttempts,
  listIdentities,
  spendEmailToken,
  waitForAttempt,
} from '../../../db/identity/index.ts'
import type { Queries } from '../../../db/kit/open.ts'
import { countRequest } from '../../../db/request/index.ts'
import type { Answer, Call, Customer, RequestFacts } from '../../../kit/http/call.ts'
import { customerEndpoint, type Endpoint, publicEndpoint } from '../../../kit/http/endpoint.ts'
import { newUuid } from '../../../kit/sys/random.ts'
import {
  confirmEmailVerification,
  getCurrentUser,
  logIn,
  logOut,
  requestEmailVerification,
  signUp,
} from '../../../resources/identity/index.ts'
import { auditEntry, auditEntryOf, countsOf, userActor, userEntry } from '../../kit/change/audit.ts'
import { SESSION_COOKIE } from '../../identity/callers.ts'
import { openNamespace } from '../../kit/change/namespaces.ts'
import { startPace } from '../../identity/pace.ts'
import type { IdentityParts } from '../../identity/parts.ts'
import { CLEARED_COOKIES, userView } from '../../identity/sessions.ts'
import { answerSignIn } from '../../identity/sign-in-answer.ts'
import { addressSubject, emailSubject } from '../../identity/subjects.ts'
import { keepLanguage } from '../../identity/language.ts'
import { mailTo, mailVerification } from '../../identity/verification.ts'
import { closeSupportSession, impersonationView } from '../support/index.ts'
import { linkedIdentityView, logoutUrlOf, PROVIDER_COOKIE } from '../identity-provider/index.ts'
import { mail } from '../../../domain/mail/mails.ts'

/** Notices of sign-up attempts that one address gets, however often somebody tries. */
const NOTICES = { requestsMaximum: 3, windowSeconds: 3600 }

export const signInEndpoints = (parts: IdentityParts): readonly Endpoint[] => [
  publicEndpoint(signUp, (call) => signUpNow(parts, call)),
  publicEndpoint(logIn, (call) => logInNow(parts, call)),
  publicEndpoint(logOut, (call) => logOutNow(parts, call)),
  customerEndpoint(getCurrentUser, (call) => readCurrentUser(parts, call.caller)),
  customerEndpoint(requestEmailVerification, (call) => sendVerification(parts, call)),
  publicEndpoint(confirmEmailVerification, (call) => verifyEmail(parts, call)),
]

/** Either branch hashes the password, runs one transaction and leaves a mail in the outbox. */
async function signUpNow(parts: IdentityParts, { body, request, now }: Call<typeof signUp>): Promise<Answer> {
  const password = acceptPassword(body.password, body.email)
  const evenOut = startPace(parts.clock)
  const passwordHash = await parts.passwords.hash(password)
  const ids = { accountId: newUuid(parts.random), userId: newUuid(parts.random), creditId: newUuid(parts.random) }
  const user = { id: ids.userId, email: body.email }
  const isNew = await parts.db
    .transaction()
    .execute(async (tx) => {
      const isCreated = await createAccount(tx, {
        ...ids,
        accountName: body.account_name ?? body.name,
        email: body.email,
        name: body.name,
        passwordHash,
        emailVerifiedAt: null,
        now,
      })
      if (!isCreated) throw new EmailTaken()
      await keepLanguage(tx, ids.userId, request, now)
      if (body.coupon_code !== undefined)
        await redeemCoupon(tx, { accountId: ids.accountId, code: body.coupon_code, now, random: parts.random })
      await mailVerification(tx, parts, user, request)
      await appendAudit(
        tx,
        auditEntry(ids.accountId, userActor(user), request, { action: 'account.created', resourceId: ids.accountId }),
        parts,
      )
      return true
    })
    .catch((error: unknown) => {
      if (error instanceof EmailTaken) return false
      throw error
    })
  // Nothing waits for it: the answer is as fast as for an address that has a user.
  if (isNew) void openNamespace(parts, ids.accountId)
  else await noticeAttempt(parts, body.email, request, now)
  await evenOut()
  return {
    status: 202,
    body: {
      detail: 'A mail is on its way. Open the link in it to verify the address, then sign in.',
      email: body.email,
    },
  }
}

/** Rolls back a sign-up whose email has a user. */
class EmailTaken extends Error {}

/** Counted separately from sign-ins: a sign-up that counted as a failed sign-in would reveal that the address has a
 *  user, and let anybody lock them out. */
async function noticeAttempt(parts: IdentityParts, email: string, request: RequestFacts, now: Date): Promise<void> {
  const waitSeconds = await countRequest(parts.db, `sign_up_notice ${email}`, NOTICES, now)
  const text = mail('sign_up_attempt', { link: `${parts.origin}/login` })
  if (waitSeconds === 0) await mailTo(parts.db, parts, email, text, request)
}

async function logInNow(parts: IdentityParts, call: Call<typeof logIn>): Promise<Answer> {
  const { body, request, now } = call
  const { db } = parts
  const waitSeconds =
    (await waitForAttempt(db, addressSubject(request), now)) ||
    (await beginAttempt(db, emailSubject(body.email), EMAIL_LOCKOUT, now))
  if (waitSeconds > 0) throw rateLimited(waitSeconds, 'Too many failed attempts to sign in. Wait, then try again.')
  const password = normalizePassword(body.password)
  const evenOut = startPace(parts.clock)
  const user = await findUserByEmail(db, body.email)
  const isRight = await parts.passwords.verify(user?.password_hash, password)
  if (user === undefined || !isRight) {
    await beginAttempt(db, addressSubject(request), ADDRESS_LOCKOUT, now)
    if (user !== undefined) await auditFailure(parts, user, request, 'failed', 'wrong_password')
    await evenOut()
    throw unauthenticated('The email address or the password is wrong.')
  }
  await forgetAttempts(db, emailSubject(body.email))
  if (user.disabled_at !== null) {
    await auditFailure(parts, user, request, 'denied', 'user_disabled')
    throw forbidden('This user is disabled. Contact support.')
  }
  if (user.password_hash !== null && parts.passwords.isOutdated(user.password_hash)) {
    await db
      .updateTable('app_user')
      .set({ password_hash: await parts.passwords.hash(password) })
      .where('id', '=', user.id)
      .execute()
  }
  return await answerSignIn(parts, { user, request, endsOthers: body.end_other_sessions }, 200)
}

async function auditFailure(
  parts: IdentityParts,
  user: UserRow,
  request: RequestFacts,
  outcome: 'failed' | 'denied',
  reason: string,
): Promise<void> {
  const entry = userEntry(user, request, { action: 'auth.login_failed', outcome, detail: { reason } })
  await parts.db.transaction().execute((tx) => appendAudit(tx, entry, parts))
}

async function logOutNow(parts: IdentityParts, call: Call<typeof logOut>): Promise<Answer> {
  const { caller, route, request } = call
  const cookies = [...CLEARED_COOKIES, { name: PROVIDER_COOKIE, value: '', maxAgeSeconds: 0, isHttpOnly: true }]
  if (caller.kind !== 'session' || caller.session === undefined) return { status: 204, cookies }
  const { session } = caller
  await parts.db.transaction().execute(async (tx) => {
    if (caller.support !== undefined) return await closeSupportSession(tx, parts, session.id, request)
    await endSession(tx, session.id)
    return await appendAudit(
      tx,
      auditEntryOf({ route, caller, request }, { resourceType: 'user', resourceId: caller.userId }),
      parts,
    )
  })
  parts.callers.forget()
  const logoutUrl = await logoutUrlOf(parts, request)
  return logoutUrl === undefined ? { status: 204, cookies } : { status: 200, body: { logout_url: logoutUrl }, cookies }
}

async function readCurrentUser(parts: IdentityParts, caller: Customer): Promise<Answer> {
  const user = await findUser(parts.db, caller.userId)
  if (user === undefined || caller.session === undefined) throw unauthenticated()
  const isVerified = user.email_verified_at !== null
  return {
    status: 200,
    body: {
      email_verified: isVerified,
      email_verification_required: !isVerified && parts.canSendMail,
      user: userView(user, caller.accountId, caller.role),
      csrf_token: caller.session.csrfToken,
      impersonation:
        caller.support === undefined ? null : impersonationView({ ...caller.support, accountId: caller.accountId }),
      account_id: caller.accountId,
      permissions: caller.permissions,
      identities: (await listIdentities(parts.db, user.id)).map((row) => linkedIdentityView(row, parts.providers)),
    },
  }
}

async function sendVerification(
  parts: IdentityParts,
  call: Call<typeof requestEmailVerification, Customer>,
): Promise<Answer> {
  if (!parts.canSendMail) throw unavailable('not_configured', 'This deployment sends no mail.')
  return await parts.db.transaction().execute(async (tx) => {
    const user = await lockUser(tx, call.caller.userId)
    if (user.email_verified_at !== null) throw conflict('state_not_allowed', 'The address is verified already.')
    await mailVerification(tx, parts, user, call.request)
    await appendAudit(tx, auditEntryOf(call, { resourceType: 'user', resourceId: user.id }), parts)
    return {
      status: 202,
      body: {
        detail: 'A mail with a new link is on its way. Links that were sent before no longer work.',
        email: user.email,
      },
    }
  })
}

/** Whether the browser has a session of the user. */
async function isSignedIn(queries: Queries, request: RequestFacts, userId: string, now: Date): Promise<boolean> {
  const secret = request.cookie(SESSION_COOKIE)
  return secret !== undefined && (await findSession(queries, secret, now))?.userId === userId
}

async function verifyEmail(
  parts: IdentityParts,
  { body, request, now }: Call<typeof confirmEmailVerification>,
): Promise<Answer> {
  const email = await parts.db.transaction().execute(async (tx) => {
    const spent = await spendEmailToken(tx, body.token, 'verify_email', now)
    if (spent === undefined) throw badField('token', 'is unknown, used or expired')
    const user = await lockUser(tx, spent.userId)
    if (user.email !== spent.email)
      throw conflict('state_not_allowed', 'The address was changed after this mail was sent.')
    // The person who opens the link owns the address. Only a session proves that they are the person who has signed up
    // with it.
    const dropped = await proveAddress(tx, user, { now, isHolder: await isSignedIn(tx, request, user.id, now) })
    const { active_account_id: accountId } = await lockUser(tx, user.id)
    await appendAudit(
      tx,
      auditEntry(accountId, userActor(user), request, {
        action: 'auth.email_verified',
        resourceType: 'user',
        resourceId: user.id,
        ...countsOf(dropped),
      }),
      parts,
    )
    return user.email
  })
  parts.callers.forget()
  return { status: 200, body: { email } }
}
