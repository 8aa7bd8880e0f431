/** The password of a person: reset by mail when it is lost, changed by a signed-in person who knows it. */
import { badField, conflict, forbidden, rateLimited } from '../../../domain/problem.ts'
import { EMAIL_LOCKOUT } from '../../../domain/identity/lockout.ts'
import { acceptPassword, normalizePassword } from '../../../domain/identity/password.ts'
import { findUser, findUserByEmail, lockUser, proveAddress } from '../../../db/account/index.ts'
import { appendAudit } from '../../../db/audit/index.ts'
import {
  beginAttempt,
  createEmailToken,
  dropEmailTokens,
  endSessionsOfUser,
  findEmailToken,
  findSecondFactor,
  forgetAttempts,
  revokeTokensOfUser,
  spendEmailToken,
} from '../../../db/identity/index.ts'
import { endKubeconfigs } from '../../../db/kubeconfig/index.ts'
import type { Answer, Call, Customer } from '../../../kit/http/call.ts'
import { customerEndpoint, type Endpoint, publicEndpoint } from '../../../kit/http/endpoint.ts'
import { changePassword, confirmPasswordReset, requestPasswordReset } from '../../../resources/identity/index.ts'
import { auditEntry, auditEntryOf, countsOf, userActor } from '../../kit/change/audit.ts'
import { startPace } from '../../identity/pace.ts'
import type { IdentityParts } from '../../identity/parts.ts'
import { emailSubject } from '../../identity/subjects.ts'
import { MAILED_SECRET_BYTES, mailTo } from '../../identity/verification.ts'
import { mail } from '../../../domain/mail/mails.ts'
import { requireProof } from '../second-factor/index.ts'

const PASSWORD_RESET_SECONDS = 30 * 60

export const passwordEndpoints = (parts: IdentityParts): readonly Endpoint[] => [
  publicEndpoint(requestPasswordReset, (call) => mailPasswordReset(parts, call)),
  publicEndpoint(confirmPasswordReset, (call) => resetPassword(parts, call)),
  customerEndpoint(changePassword, (call) => change(parts, call)),
]

async function mailPasswordReset(
  parts: IdentityParts,
  { body, request, now }: Call<typeof requestPasswordReset>,
): Promise<Answer> {
  const evenOut = startPace(parts.clock)
  const user = await findUserByEmail(parts.db, body.email)
  if (user !== undefined && user.disabled_at === null && parts.canSendMail) {
    const secret = parts.random.bytes(MAILED_SECRET_BYTES).toString('base64url')
    await parts.db.transaction().execute(async (tx) => {
      await dropEmailTokens(tx, user.id, 'reset_password')
      await createEmailToken(tx, {
        secret,
        userId: user.id,
        purpose: 'reset_password',
        email: user.email,
        now,
        expiresAt: new Date(now.getTime() + PASSWORD_RESET_SECONDS * 1000),
      })
      const link = `${parts.origin}/reset-password#token=${secret}`
      await mailTo(tx, parts, user.email, mail('reset_password', { link }), request)
    })
  }
  await evenOut()
  return {
    status: 202,
    body: { detail: 'If the address has a user, a mail with a link is on its way.', email: body.email },
  }
}

/** The mail proves the address as well. The second factor remains: the next sign-in requires it. */
async function resetPassword(
  parts: IdentityParts,
  { body, request, now }: Call<typeof confirmPasswordReset>,
): Promise<Answer> {
  const invalid = () => badField('token', 'is unknown, used or expired')
  const found = await findEmailToken(parts.db, body.token, 'reset_password', now)
  if (found === undefined) throw invalid()
  const passwordHash = await parts.passwords.hash(acceptPassword(body.password, found.email))
  await parts.db.transaction().execute(async (tx) => {
    const spent = await spendEmailToken(tx, body.token, 'reset_password', now)
    if (spent === undefined) throw invalid()
    const user = await lockUser(tx, spent.userId)
    if (user.email !== spent.email) throw invalid()
    await tx
      .updateTable('app_user')
      .set({
        password_hash: passwordHash,
        password_generation: user.password_generation + 1,
      })
      .where('id', '=', user.id)
      .execute()
    await endSessionsOfUser(tx, user.id, now)
    const dropped = await proveAddress(tx, user, { now, isHolder: false })
    const ended = body.end_tokens
      ? {
          tokens: await revokeTokensOfUser(tx, user.id, now),
          kubeconfigs: await endKubeconfigs(tx, { user_id: user.id }, now),
        }
      : {}
    const { active_account_id: accountId } = await lockUser(tx, user.id)
    await forgetAttempts(tx, emailSubject(user.email))
    await mailTo(tx, parts, user.email, mail('password_changed', {}), request)
    await appendAudit(
      tx,
      auditEntry(accountId, userActor(user), request, {
        action: 'auth.password_reset',
        resourceType: 'user',
        resourceId: user.id,
        ...countsOf({ ...ended, ...dropped }),
      }),
      parts,
    )
  })
  parts.callers.forget()
  return { status: 204 }
}

/** Guesses of the current password count as guesses at sign-in do. */
async function change(parts: IdentityParts, call: Call<typeof changePassword, Customer>): Promise<Answer> {
  const { body, caller, now } = call
  const { db, passwords } = parts
  const password = acceptPassword(body.password, caller.email)
  const user = await findUser(db, caller.userId)
  if (user === undefined || user.password_hash === null)
    throw conflict('state_not_allowed', 'You have no password yet. Set one with the link of a password reset.')
  const factor = await findSecondFactor(db, user.id, now)
  const needsProof = factor !== undefined && factor.enabledAt !== null
  if (needsProof && (body.code === undefined) === (body.recovery_code === undefined))
    throw badField('code', 'needs exactly one of code and recovery_code')
  const waitSeconds = await beginAttempt(db, emailSubject(user.email), EMAIL_LOCKOUT, now)
  if (waitSeconds > 0) throw rateLimited(waitSeconds, 'Too many wrong passwords. Wait, then try again.')
  if (!(await passwords.verify(user.password_hash, normalizePassword(body.current_password))))
    throw forbidden('The current password is wrong.')
  await forgetAttempts(db, emailSubject(user.email))
  if (needsProof) await requireProof(parts, caller, body)
  const passwordHash = await passwords.hash(password)
  await db.transaction().execute(async (tx) => {
    const { password_generation: generation } = await lockUser(tx, user.id)
    if (generation !== user.password_generation)
      throw conflict('state_not_allowed', 'The password was changed just now.')
    await tx
      .updateTable('app_user')
      .set({ password_hash: passwordHash, password_generation: generation + 1 })
      .where('id', '=', user.id)
      .execute()
    await dropEmailTokens(tx, user.id, 'reset_password')
    await endSessionsOfUser(tx, user.id, now, { except: caller.session?.id })
    await mailTo(tx, parts, user.email, mail('password_changed', {}), call.request)
    await appendAudit(tx, auditEntryOf(call, { resourceType: 'user', resourceId: user.id }), parts)
  })
  parts.callers.forget()
  return { status: 204 }
}
