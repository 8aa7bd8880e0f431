/** Sign-in of the staff: password and authenticator, both always. */
import { forbidden, rateLimited, unauthenticated } from '../../../domain/problem.ts'
import { EMAIL_LOCKOUT, SECOND_FACTOR_LOCKOUT } from '../../../domain/identity/lockout.ts'
import { normalizePassword } from '../../../domain/identity/password.ts'
import { beginAttempt, forgetAttempts } from '../../../db/identity/index.ts'
import {
  createStaffSession,
  endStaffSession,
  findStaff,
  findStaffByEmail,
  spendStaffStep,
  STAFF_SESSION_SECONDS,
  type StaffRow,
} from '../../../db/staff/index.ts'
import type { Answer, Call, Cookie, Operator } from '../../../kit/http/call.ts'
import { type Endpoint, publicEndpoint } from '../../../kit/http/endpoint.ts'
import { newUuid } from '../../../kit/sys/random.ts'
import { getCurrentStaff, logInStaff, logOutStaff, verifyStaffSecondFactor } from '../../../resources/staff/index.ts'
import { startPace } from '../../identity/pace.ts'
import type { IdentityParts } from '../../identity/parts.ts'
import { requireSealing, matchedStep } from '../../identity/second-factor.ts'
import { STAFF_CSRF_COOKIE, STAFF_SESSION_COOKIE } from '../../identity/staff.ts'
import { auditStaff } from '../../kit/change/staff-audit.ts'

const CHALLENGE_SECONDS = 300
const SECRET_BYTES = 32

export const staffSignInEndpoints = (parts: IdentityParts): readonly Endpoint[] => [
  publicEndpoint(logInStaff, (call) => logIn(parts, call)),
  publicEndpoint(verifyStaffSecondFactor, (call) => verify(parts, call)),
  publicEndpoint(logOutStaff, (call) => logOut(parts, call)),
  publicEndpoint(getCurrentStaff, (call) => readCurrent(parts, call)),
]

async function logIn(parts: IdentityParts, { body, now }: Call<typeof logInStaff>): Promise<Answer> {
  const subject = `staff ${body.email}`
  const waitSeconds = await beginAttempt(parts.db, subject, EMAIL_LOCKOUT, now)
  if (waitSeconds > 0) throw rateLimited(waitSeconds, 'Too many failed attempts to sign in. Wait, then try again.')
  const evenOut = startPace(parts.clock)
  const staff = await findStaffByEmail(parts.db, body.email)
  if (
    !(await parts.passwords.verify(staff?.password_hash, normalizePassword(body.password))) ||
    staff === undefined ||
    staff.disabled_at !== null
  ) {
    await evenOut()
    throw unauthenticated('The email address or the password is wrong.')
  }
  await forgetAttempts(parts.db, subject)
  const expiresAt = new Date(now.getTime() + CHALLENGE_SECONDS * 1000)
  const challenge = await parts.tickets.seal(
    'staff-second-factor',
    { staff: staff.id, generation: staff.password_generation },
    expiresAt,
  )
  return {
    status: 200,
    body: { mfa_required: true, mfa_step: 'verify', challenge, challenge_expires_at: expiresAt.toISOString() },
  }
}

async function verify(
  parts: IdentityParts,
  { body, request, route, now }: Call<typeof verifyStaffSecondFactor>,
): Promise<Answer> {
  requireSealing(parts)
  const content = await parts.tickets.open('staff-second-factor', body.challenge)
  const staff = content === undefined ? undefined : await findStaff(parts.db, String(content['staff']))
  if (
    staff === undefined ||
    staff.disabled_at !== null ||
    staff.sealed_secret === null ||
    staff.password_generation !== content?.['generation']
  ) {
    throw unauthenticated('The challenge is invalid or expired: sign in again.')
  }
  const subject = `staff-factor ${staff.id}`
  const waitSeconds = await beginAttempt(parts.db, subject, SECOND_FACTOR_LOCKOUT, now)
  if (waitSeconds > 0) throw rateLimited(waitSeconds, 'Too many wrong codes. Wait, then try again.')
  const step = matchedStep(parts.sealing.open(staff.sealed_secret, staff.id), body.code, now)
  if (step === undefined || !(await spendStaffStep(parts.db, staff.id, step)))
    throw unauthenticated('The code is wrong or was used before.')
  const sessionId = newUuid(parts.random)
  const secret = parts.random.bytes(SECRET_BYTES).toString('base64url')
  const expiresAt = new Date(now.getTime() + STAFF_SESSION_SECONDS * 1000)
  const csrfToken = parts.csrfTokenOf(sessionId)
  const caller: Operator = {
    kind: 'operator',
    name: staff.email,
    actor: 'operator',
    groups: [],
    roles: [staff.role],
    staff: { id: staff.id, email: staff.email, name: staff.name, sessionId, csrfToken },
  }
  await parts.db.transaction().execute(async (tx) => {
    await forgetAttempts(tx, subject)
    await createStaffSession(tx, { id: sessionId, secret, staffId: staff.id, now, expiresAt })
    await auditStaff(
      tx,
      parts,
      { caller, request, route },
      { action: 'staff.login', resourceType: 'staff', resourceId: staff.id },
    )
  })
  return {
    status: 200,
    body: { staff: staffView(staff), csrf_token: csrfToken, expires_at: expiresAt.toISOString() },
    cookies: staffCookies(secret, csrfToken, STAFF_SESSION_SECONDS),
  }
}

const staffView = ({ id, email, name, role }: StaffRow) => ({ id, email, name, role })
const staffCookies = (secret: string, csrfToken: string, maxAgeSeconds: number): readonly Cookie[] => [
  { name: STAFF_SESSION_COOKIE, value: secret, maxAgeSeconds, isHttpOnly: true },
  { name: STAFF_CSRF_COOKIE, value: csrfToken, maxAgeSeconds, isHttpOnly: false },
]

async function logOut(parts: IdentityParts, { caller }: Call<typeof logOutStaff>): Promise<Answer> {
  if (caller.kind === 'operator' && caller.staff !== undefined) await endStaffSession(parts.db, caller.staff.sessionId)
  return { status: 204, cookies: staffCookies('', '', 0) }
}

async function readCurrent(parts: IdentityParts, { caller }: Call<typeof getCurrentStaff>): Promise<Answer> {
  if (caller.kind !== 'operator' || caller.staff === undefined) throw forbidden('This is for staff sessions.')
  const staff = await findStaff(parts.db, caller.staff.id)
  if (staff === undefined) throw unauthenticated()
  return { status: 200, body: { staff: staffView(staff), csrf_token: caller.staff.csrfToken } }
}
