/** From a proven first factor to a session, with the second factor between them where one is required. Every way of
 *  signing in uses this. */
import type { Transaction } from 'kysely'
import { forbidden, unauthenticated } from '../../domain/problem.ts'
import { findUser, resolveActiveAccount, type UserRow } from '../../db/account/index.ts'
import { appendAudit } from '../../db/audit/index.ts'
import { findSecondFactor, isSecondFactorRequired, markActive } from '../../db/identity/index.ts'
import type { Tables } from '../../db/tables.ts'
import type { Cookie, RequestFacts } from '../../kit/http/call.ts'
import { userEntry } from '../kit/change/audit.ts'
import type { IdentityParts } from './parts.ts'
import { issuedSessionView, openSession } from './sessions.ts'

const CHALLENGE_SECONDS = 5 * 60

export type SecondFactorStep = 'verify' | 'enroll'

export interface SignIn {
  readonly user: UserRow
  readonly request: RequestFacts
  readonly endsOthers: boolean
  /** Where the portal continues after a sign-in with an identity provider. */
  readonly returnTo?: string | undefined
}

export interface Challenge {
  readonly step: SecondFactorStep
  readonly challenge: string
  readonly expiresAt: Date
}

/** The challenge that this person must pass before a session; undefined when there is none. */
export async function challengeFor(parts: IdentityParts, signIn: SignIn): Promise<Challenge | undefined> {
  const { user } = signIn
  const now = parts.clock.now()
  const factor = await findSecondFactor(parts.db, user.id, now)
  const isEnabled = factor !== undefined && factor.enabledAt !== null
  if (!isEnabled && !(await isSecondFactorRequired(parts.db, user.id))) return undefined
  const step: SecondFactorStep = isEnabled ? 'verify' : 'enroll'
  const expiresAt = new Date(now.getTime() + CHALLENGE_SECONDS * 1000)
  const content = {
    user: user.id,
    generation: user.password_generation,
    step,
    ends: signIn.endsOthers,
    return_to: signIn.returnTo,
  }
  const challenge = await parts.tickets.seal('second-factor', content, expiresAt)
  await parts.db
    .transaction()
    .execute((tx) =>
      appendAudit(tx, userEntry(user, signIn.request, { action: 'auth.login_mfa_required', detail: { step } }), parts),
    )
  return { step, challenge, expiresAt }
}

/** The user whose sign-in the challenge continues. Throws 401 when it is not ours, expired, or older than the person's
 *  password. */
export async function openChallenge(
  parts: IdentityParts,
  challenge: string,
  request: RequestFacts,
): Promise<SignIn & { readonly step: SecondFactorStep }> {
  const content = await parts.tickets.open('second-factor', challenge)
  const user = content === undefined ? undefined : await findUser(parts.db, String(content['user']))
  if (
    content === undefined ||
    user === undefined ||
    user.disabled_at !== null ||
    user.password_generation !== content['generation']
  ) {
    throw unauthenticated('The challenge is invalid or expired: sign in again.')
  }
  const returnTo = typeof content['return_to'] === 'string' ? content['return_to'] : undefined
  return {
    user,
    request,
    endsOthers: content['ends'] === true,
    returnTo,
    step: content['step'] === 'enroll' ? 'enroll' : 'verify',
  }
}

/** Does the work, which completes the sign-in, in a transaction. Sessions that it ended are refused from then on, even
 *  if they are cached. */
export async function signingIn<Result>(
  parts: IdentityParts,
  work: (tx: Transaction<Tables>, complete: typeof completeSignIn) => Promise<Result>,
): Promise<Result> {
  const result = await parts.db.transaction().execute((tx) => work(tx, completeSignIn))
  parts.callers.forget()
  return result
}

/** Starts the session, and writes the sign-in into the audit log of the account that it acts for. */
async function completeSignIn(
  tx: Transaction<Tables>,
  parts: IdentityParts,
  signIn: SignIn,
  /** The audit log records which proof was given, and the session that one was given. */
  detail: { readonly second_factor?: 'totp' | 'recovery_code'; readonly provider?: string } = {},
): Promise<{ readonly view: Awaited<ReturnType<typeof issuedSessionView>>; readonly cookies: readonly Cookie[] }> {
  const { request, endsOthers } = signIn
  const accountId = await resolveActiveAccount(tx, signIn.user.id)
  if (accountId === undefined) throw forbidden('You no longer belong to an account. Ask for an invitation.')
  const user = { ...signIn.user, active_account_id: accountId }
  await markActive(tx, accountId, user.id, parts.clock.now())
  const hasSecondFactor = detail.second_factor !== undefined
  const session = await openSession(tx, parts, { userId: user.id, request, endsOthers, hasSecondFactor })
  const view = await issuedSessionView(tx, user, session)
  await appendAudit(tx, userEntry(user, request, { action: 'auth.login', detail }), parts)
  return { view, cookies: session.cookies }
}
