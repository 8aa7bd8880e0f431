/** Second factors: the steps of a sign-in that needs one, and each person's own in the account. */
import { defined } from '../../../domain/defined.ts'
import { conflict, forbidden, notFound, unauthenticated } from '../../../domain/problem.ts'
import { type UserRow, lockUser } from '../../../db/account/index.ts'
import { appendAudit } from '../../../db/audit/index.ts'
import {
  countRecoveryCodes,
  findSecondFactor,
  isSecondFactorRequired,
  markSecondFactor,
  removeSecondFactor,
} from '../../../db/identity/index.ts'
import type { Answer, Call, Customer, RequestFacts } from '../../../kit/http/call.ts'
import { type Endpoint, customerEndpoint, publicEndpoint } from '../../../kit/http/endpoint.ts'
import {
  disableAccountTotp,
  finishAccountTotpSetup,
  finishLoginSecondFactorSetup,
  getAccountMfa,
  replaceAccountRecoveryCodes,
  setAccountMfaPolicy,
  startAccountTotpSetup,
  startLoginSecondFactorSetup,
  verifyLoginSecondFactor,
} from '../../../resources/second-factor/index.ts'
import { auditEntryOf, userEntry } from '../../kit/change/audit.ts'
import type { IdentityParts } from '../../identity/parts.ts'
import {
  type Proof,
  beginSetup,
  confirmSetup,
  countProof,
  forgetProofs,
  issueRecoveryCodes,
  mailWhenLocked,
  spendProof,
} from '../../identity/second-factor.ts'
import { openChallenge, signingIn } from '../../identity/sign-in.ts'
import { noun } from '../../kit/noun.ts'

const secondFactorEndpoints = (parts: IdentityParts): readonly Endpoint[] => [
  publicEndpoint(verifyLoginSecondFactor, (call) => verify(parts, call)),
  publicEndpoint(startLoginSecondFactorSetup, (call) => startAtSignIn(parts, call)),
  publicEndpoint(finishLoginSecondFactorSetup, (call) => finishAtSignIn(parts, call)),
  customerEndpoint(getAccountMfa, async (call) => ({ status: 200, body: await statusOf(parts, call.caller.userId) })),
  customerEndpoint(setAccountMfaPolicy, (call) => setPolicy(parts, call)),
  customerEndpoint(replaceAccountRecoveryCodes, (call) => replaceCodes(parts, call)),
  customerEndpoint(startAccountTotpSetup, (call) => startSetup(parts, call)),
  customerEndpoint(disableAccountTotp, (call) => disable(parts, call)),
  customerEndpoint(finishAccountTotpSetup, (call) => finishSetup(parts, call)),
]

async function verify(parts: IdentityParts, { body, request }: Call<typeof verifyLoginSecondFactor>): Promise<Answer> {
  const signIn = await openChallenge(parts, body.challenge, request)
  const { user } = signIn
  if (signIn.step !== 'verify')
    throw conflict('state_not_allowed', 'This sign-in waits for a second factor to be set up.')
  await countProof(parts, user)
  const answer = await signingIn(parts, async (tx, complete): Promise<Answer | undefined> => {
    if (!(await spendProof(tx, parts, user.id, body))) return undefined
    await forgetProofs(tx, user.id)
    const isRecovery = body.recovery_code !== undefined
    if (isRecovery) await appendAudit(tx, userEntry(user, request, { action: 'auth.mfa_recovery_code_used' }), parts)
    const { view, cookies } = await complete(tx, parts, signIn, {
      second_factor: isRecovery ? 'recovery_code' : 'totp',
    })
    const returnTo = signIn.returnTo === undefined ? {} : { return_to: signIn.returnTo }
    return {
      status: 200,
      body: { ...view, recovery_codes_remaining: await countRecoveryCodes(tx, user.id), ...returnTo },
      cookies,
    }
  })
  return answer ?? (await refuseAtSignIn(parts, user, request))
}

async function refuseAtSignIn(parts: IdentityParts, user: UserRow, request: RequestFacts): Promise<never> {
  const entry = userEntry(user, request, { action: 'auth.mfa_failed', outcome: 'failed' })
  await parts.db.transaction().execute((tx) => appendAudit(tx, entry, parts))
  await mailWhenLocked(parts, user)
  throw unauthenticated('The code is wrong or was used before.')
}

async function startAtSignIn(
  parts: IdentityParts,
  { body, request }: Call<typeof startLoginSecondFactorSetup>,
): Promise<Answer> {
  const { user, step } = await openChallenge(parts, body.challenge, request)
  if (step !== 'enroll')
    throw conflict('state_not_allowed', 'This sign-in waits for a code of the second factor that is set up.')
  return await parts.db.transaction().execute(async (tx) => {
    const setup = await beginSetup(tx, parts, user)
    await appendAudit(tx, userEntry(user, request, { action: 'account.mfa_setup_started' }), parts)
    return { status: 200, body: setup }
  })
}

async function finishAtSignIn(
  parts: IdentityParts,
  { body, request }: Call<typeof finishLoginSecondFactorSetup>,
): Promise<Answer> {
  const signIn = await openChallenge(parts, body.challenge, request)
  const { user, step } = signIn
  if (step !== 'enroll')
    throw conflict('state_not_allowed', 'This sign-in waits for a code of the second factor that is set up.')
  await countProof(parts, user)
  const answer = await signingIn(parts, async (tx, complete): Promise<Answer | undefined> => {
    const codes = await confirmSetup(tx, parts, user.id, body.code ?? '')
    if (codes === undefined) return undefined
    await forgetProofs(tx, user.id)
    await appendAudit(tx, userEntry(user, request, { action: 'account.mfa_enabled' }), parts)
    const { view, cookies } = await complete(tx, parts, signIn, { second_factor: 'totp' })
    return {
      status: 200,
      body: {
        ...view,
        recovery_codes: codes,
        ...defined({ return_to: signIn.returnTo }),
      },
      cookies,
    }
  })
  return answer ?? (await refuseAtSignIn(parts, user, request))
}

async function statusOf(parts: IdentityParts, userId: string) {
  const factor = await findSecondFactor(parts.db, userId, parts.clock.now())
  const isEnabled = factor !== undefined && factor.enabledAt !== null
  return {
    totp_enabled: isEnabled,
    totp_pending: factor !== undefined && !isEnabled,
    enabled_at: factor?.enabledAt?.toISOString() ?? null,
    recovery_codes_remaining: await countRecoveryCodes(parts.db, userId),
    required_by_account: await isSecondFactorRequired(parts.db, userId),
    available: parts.sealing.isAvailable,
  }
}

async function setPolicy(parts: IdentityParts, call: Call<typeof setAccountMfaPolicy, Customer>): Promise<Answer> {
  const { caller, body, now } = call
  if (caller.role !== 'owner') throw forbidden('Only the owner of the account may change this.')
  const factor = await findSecondFactor(parts.db, caller.userId, now)
  if (factor === undefined || factor.enabledAt === null)
    throw conflict('state_not_allowed', 'Set up your own second factor first.')
  await parts.db.transaction().execute(async (tx) => {
    const account = await tx
      .selectFrom('account')
      .select(['requires_second_factor', 'second_factor_required_since'])
      .where('id', '=', caller.accountId)
      .forUpdate()
      .executeTakeFirstOrThrow()
    const since = body.required ? (account.second_factor_required_since ?? now) : null
    await tx
      .updateTable('account')
      .set({ requires_second_factor: body.required, second_factor_required_since: since })
      .where('id', '=', caller.accountId)
      .execute()
    const changes = [{ field: 'required', before: account.requires_second_factor, after: body.required }]
    await appendAudit(tx, auditEntryOf(call, { resourceId: caller.accountId, changes }), parts)
  })
  return { status: 200, body: await statusOf(parts, caller.userId) }
}

async function startSetup(parts: IdentityParts, call: Call<typeof startAccountTotpSetup, Customer>): Promise<Answer> {
  return await parts.db.transaction().execute(async (tx) => {
    const setup = await beginSetup(tx, parts, { id: call.caller.userId, email: call.caller.email })
    await appendAudit(tx, auditEntryOf(call, { resourceType: 'user', resourceId: call.caller.userId }), parts)
    return { status: 200, body: setup }
  })
}

async function finishSetup(parts: IdentityParts, call: Call<typeof finishAccountTotpSetup, Customer>): Promise<Answer> {
  const { caller } = call
  const person = { id: caller.userId, email: caller.email }
  await countProof(parts, person)
  const codes = await parts.db.transaction().execute(async (tx) => {
    const issued = await confirmSetup(tx, parts, caller.userId, call.body.code)
    if (issued === undefined) return undefined
    await forgetProofs(tx, caller.userId)
    if (caller.session !== undefined) await markSecondFactor(tx, caller.session.id)
    await appendAudit(tx, auditEntryOf(call, { resourceType: 'user', resourceId: caller.userId }), parts)
    return issued
  })
  if (codes === undefined) await refuseProof(parts, person)
  return { status: 200, body: { recovery_codes: codes } }
}

/** The pipeline writes the refusal as auth.mfa_failed. */
async function refuseProof(
  parts: IdentityParts,
  person: { readonly id: string; readonly email: string },
): Promise<never> {
  await mailWhenLocked(parts, person)
  throw forbidden('The code is wrong or was used before.', 'second_factor_invalid')
}

/** Requires a proof of the enabled factor before the person changes it. Throws 404 without a factor, 429, and 403 for a
 *  wrong code. */
export async function requireProof(parts: IdentityParts, caller: Customer, proof: Proof): Promise<void> {
  const factor = await findSecondFactor(parts.db, caller.userId, parts.clock.now())
  if (factor === undefined || factor.enabledAt === null) throw notFound('second factor')
  const person = { id: caller.userId, email: caller.email }
  await countProof(parts, person)
  if (!(await spendProof(parts.db, parts, caller.userId, proof))) await refuseProof(parts, person)
  await forgetProofs(parts.db, caller.userId)
}

async function replaceCodes(
  parts: IdentityParts,
  call: Call<typeof replaceAccountRecoveryCodes, Customer>,
): Promise<Answer> {
  await requireProof(parts, call.caller, call.body)
  return await parts.db.transaction().execute(async (tx) => {
    const codes = await issueRecoveryCodes(tx, parts, call.caller.userId)
    await appendAudit(tx, auditEntryOf(call, { resourceType: 'user', resourceId: call.caller.userId }), parts)
    return { status: 200, body: { recovery_codes: codes } }
  })
}

async function disable(parts: IdentityParts, call: Call<typeof disableAccountTotp, Customer>): Promise<Answer> {
  const { userId } = call.caller
  const factor = await findSecondFactor(parts.db, userId, call.now)
  if (factor === undefined || factor.enabledAt === null) throw notFound('second factor')
  if (await isSecondFactorRequired(parts.db, userId))
    throw conflict('state_not_allowed', 'The account requires a second factor of every member.')
  await requireProof(parts, call.caller, call.body)
  await parts.db.transaction().execute(async (tx) => {
    await lockUser(tx, userId)
    await removeSecondFactor(tx, userId)
    await appendAudit(tx, auditEntryOf(call, { resourceType: 'user', resourceId: userId }), parts)
  })
  return { status: 204 }
}

export const secondFactor = noun<IdentityParts>({ name: 'second_factor', endpoints: secondFactorEndpoints })
