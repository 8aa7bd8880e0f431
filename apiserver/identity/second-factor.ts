/** Second factors: setting up an authenticator (RFC 6238: SHA-1, six digits, 30 seconds), verifying codes, recovery
 *  codes. A wrong code and a code that was used before get the same answer. */
import { createHmac } from 'node:crypto'
import { generateURI, ScureBase32Plugin, verifySync } from 'otplib'
import type { Transaction } from 'kysely'
import { SECOND_FACTOR_LOCKOUT } from '../../domain/identity/lockout.ts'
import { conflict, rateLimited, unavailable } from '../../domain/problem.ts'
import {
  formatRecoveryCode,
  normalizeRecoveryCode,
  RECOVERY_CODE_BYTES,
  RECOVERY_CODES,
} from '../../domain/identity/recovery-code.ts'
import {
  beginAttempt,
  enableSecondFactor,
  findSecondFactor,
  forgetAttempts,
  replaceRecoveryCodes,
  resealSecret,
  spendRecoveryCode,
  spendStep,
  startSetup,
  waitForAttempt,
} from '../../db/identity/index.ts'
import type { Queries } from '../../db/kit/open.ts'
import { enqueueMail } from '../../db/mail/index.ts'
import type { Tables } from '../../db/tables.ts'
import { newUuid } from '../../kit/sys/random.ts'
import { mail } from '../../domain/mail/mails.ts'
import type { IdentityParts } from './parts.ts'

const SECRET_BYTES = 20
const PERIOD_SECONDS = 30
const SETUP_SECONDS = 15 * 60
const ISSUER = 'svccloud'

export interface Proof {
  readonly code?: string | undefined
  readonly recovery_code?: string | undefined
}

/** The time step of a correct code, or undefined. One step to either side is accepted. */
export function matchedStep(secret: string, code: string, now: Date): number | undefined {
  const result = verifySync({
    secret,
    token: code,
    epoch: Math.floor(now.getTime() / 1000),
    epochTolerance: PERIOD_SECONDS,
  })
  return result.valid && 'timeStep' in result ? result.timeStep : undefined
}

/** Throws 503 when the deployment has no key. */
export const requireSealing = (parts: IdentityParts): void => {
  if (!parts.sealing.isAvailable)
    throw unavailable('not_configured', 'This deployment has no key to keep authenticator secrets with.')
}

/** A new authenticator secret for the person, inactive until its first code. Throws 409 when one is enabled, 503
 *  without a sealing key. */
export async function beginSetup(
  queries: Queries,
  parts: IdentityParts,
  user: { readonly id: string; readonly email: string },
) {
  requireSealing(parts)
  const now = parts.clock.now()
  const expiresAt = new Date(now.getTime() + SETUP_SECONDS * 1000)
  const secret = new ScureBase32Plugin().encode(parts.random.bytes(SECRET_BYTES), { padding: false })
  const isStarted = await startSetup(queries, {
    userId: user.id,
    sealedSecret: parts.sealing.seal(secret, user.id),
    now,
    expiresAt,
  })
  if (!isStarted) throw conflict('state_not_allowed', 'An authenticator is set up already.')
  return {
    secret,
    otpauth_uri: generateURI({ issuer: ISSUER, label: user.email, secret }),
    expires_at: expiresAt.toISOString(),
  }
}

/** Enables the pending authenticator with its first code and returns ten new recovery codes; undefined for a wrong
 *  code. Throws 409 without a pending setup. The first code cannot be used again to sign in. */
export async function confirmSetup(
  tx: Transaction<Tables>,
  parts: IdentityParts,
  userId: string,
  code: string,
): Promise<readonly string[] | undefined> {
  const now = parts.clock.now()
  const pending = await findSecondFactor(tx, userId, now)
  if (pending === undefined || pending.enabledAt !== null)
    throw conflict('state_not_allowed', 'No authenticator waits for its first code.')
  requireSealing(parts)
  const step = matchedStep(parts.sealing.open(pending.sealedSecret, userId), code, now)
  if (step === undefined) return undefined
  if (!(await enableSecondFactor(tx, { userId, sealedSecret: pending.sealedSecret, step, now })))
    throw conflict('state_not_allowed', 'No authenticator waits for its first code.')
  return await issueRecoveryCodes(tx, parts, userId)
}

/** Ten new codes; every earlier one becomes invalid. */
export async function issueRecoveryCodes(
  tx: Transaction<Tables>,
  parts: IdentityParts,
  userId: string,
): Promise<readonly string[]> {
  const codes = Array.from({ length: RECOVERY_CODES }, () =>
    formatRecoveryCode(parts.random.bytes(RECOVERY_CODE_BYTES)),
  )
  await replaceRecoveryCodes(
    tx,
    userId,
    codes.map((code) => hashRecoveryCode(parts, code)),
  )
  return codes
}

const hashRecoveryCode = (parts: IdentityParts, code: string): Buffer =>
  createHmac('sha256', parts.recoveryKey).update(normalizeRecoveryCode(code)).digest()

const subjectOf = (userId: string): string => `second-factor ${userId}`

/** Counts an attempt against the person's factor. Throws 429 while it is locked; mails the person when this attempt
 *  locks it. */
export async function countProof(
  parts: IdentityParts,
  user: { readonly id: string; readonly email: string },
): Promise<void> {
  const now = parts.clock.now()
  const waitSeconds = await beginAttempt(parts.db, subjectOf(user.id), SECOND_FACTOR_LOCKOUT, now)
  if (waitSeconds > 0) throw rateLimited(waitSeconds, 'Too many wrong codes. Wait, then try again.')
}

/** Mails the person when the attempt that just failed locked their factor: the person who tries knows the password
 *  already. */
export async function mailWhenLocked(
  parts: IdentityParts,
  user: { readonly id: string; readonly email: string },
): Promise<void> {
  if (!parts.canSendMail || (await waitForAttempt(parts.db, subjectOf(user.id), parts.clock.now())) === 0) return
  await enqueueMail(parts.db, {
    id: newUuid(parts.random),
    recipient: user.email,
    mail: mail('second_factor_locked', {}),
    createdAt: parts.clock.now(),
  })
}

/** Lifts the lock that wrong proofs caused. */
export const forgetProofs = (queries: Queries, userId: string): Promise<void> =>
  forgetAttempts(queries, subjectOf(userId))

/** Verifies and spends a proof of the enabled factor. Each code is accepted once, even when several requests send it at
 *  the same time. */
export async function spendProof(
  queries: Queries,
  parts: IdentityParts,
  userId: string,
  proof: Proof,
): Promise<boolean> {
  const now = parts.clock.now()
  if (proof.recovery_code !== undefined)
    return await spendRecoveryCode(queries, userId, hashRecoveryCode(parts, proof.recovery_code), now)
  const factor = await findSecondFactor(queries, userId, now)
  if (factor === undefined || factor.enabledAt === null || proof.code === undefined) return false
  requireSealing(parts)
  const secret = parts.sealing.open(factor.sealedSecret, userId)
  const step = matchedStep(secret, proof.code, now)
  if (step === undefined || !(await spendStep(queries, userId, step))) return false
  if (parts.sealing.isOutdated(factor.sealedSecret))
    await resealSecret(queries, userId, factor.sealedSecret, parts.sealing.seal(secret, userId))
  return true
}
