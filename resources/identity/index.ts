/** Users and sign-in: public shapes and routes of sign-up, sessions and email verification. Stored in PostgreSQL
 *  only. */
import { z } from 'zod'
import { PERMISSIONS, ROLES, SUPPORT_MODES } from '../../domain/permissions.ts'
import { route } from '../kit/define.ts'
import { EXAMPLE } from '../kit/examples.ts'
import { DateTime, Uuid } from '../kit/shapes.ts'
import { routesUnder } from '../kit/verbs.ts'
import { CouponCode } from '../kit/fields.ts'

/** Of an address in mail. */
export const EMAIL_LENGTH_MAXIMUM = 254
/** Trimmed and lower-cased. */
export const Email = z.string().trim().toLowerCase().max(EMAIL_LENGTH_MAXIMUM).pipe(z.email())
const PersonName = z
  .string()
  .trim()
  .min(1)
  .max(200)
  .regex(/^[^\p{Cc}\p{Cf}\p{Zl}\p{Zp}]*$/u, 'must be printable')
/** `domain/identity/password.ts` checks it; this bound only keeps hashing cheap. */
export const Password = z.string().min(1).max(1024)
/** A secret from a mail or a challenge. */
export const MailedToken = z.string().min(1).max(512)

export const SecondFactorCode = z.string().regex(/^\d{6}$/, 'must be six digits')
export const RecoveryCode = z.string().min(1).max(64)

export const User = z
  .strictObject({ id: Uuid, email: z.string(), name: z.string().optional(), account_id: Uuid, role: z.enum(ROLES) })
  .meta({ id: 'User' })
export const IssuedSession = z
  .strictObject({ user: User, csrf_token: z.string(), expires_at: DateTime, ended_sessions: z.int().min(0).optional() })
  .meta({ id: 'IssuedSession' })
export const Impersonation = z
  .strictObject({
    staff_email: z.string(),
    staff_name: z.string(),
    reason: z.string(),
    mode: z.enum(SUPPORT_MODES),
    expires_at: DateTime,
    account_id: Uuid,
  })
  .meta({ id: 'Impersonation' })
export const LinkedIdentity = z
  .strictObject({
    id: Uuid,
    provider: z.string(),
    provider_name: z.string(),
    subject_hint: z.string(),
    linked_at: DateTime,
    last_login_at: DateTime.nullable(),
  })
  .meta({ id: 'LinkedIdentity' })
export const CurrentUser = z
  .strictObject({
    email_verified: z.boolean(),
    email_verification_required: z.boolean(),
    user: User,
    csrf_token: z.string(),
    impersonation: Impersonation.nullable(),
    account_id: Uuid,
    permissions: z.array(z.enum(PERMISSIONS)),
    identities: z.array(LinkedIdentity),
  })
  .meta({ id: 'CurrentUser' })
/** Answer to a correct password when a second factor is required. */
export const SecondFactorStep = z
  .strictObject({
    mfa_required: z.literal(true),
    mfa_step: z.enum(['verify', 'enroll']),
    challenge: z.string(),
    challenge_expires_at: DateTime,
  })
  .meta({ id: 'SecondFactorStep' })
const MailSent = z.strictObject({ detail: z.string(), email: z.string() }).meta({ id: 'MailSent' })

const signIn = routesUnder({
  path: '/v1/auth',
  credentials: ['public'],
  permission: null,
  budget: 'none',
})

export const signUp = signIn.post('sign_up', '/signup', {
  summary: 'Create an account and its owner',
  description:
    'Sends an email with a verification link. The answer is the same for a new address and for one that already ' +
    'has a user.',
  body: z.strictObject({
    name: PersonName,
    email: Email,
    password: Password,
    account_name: PersonName.optional(),
    coupon_code: CouponCode.optional(),
  }),
  example: { name: 'Ada', email: 'ada@example.com', password: EXAMPLE.password, account_name: 'Example' },
  answers: { 202: MailSent },
  refuses: [400, 429],
  rates: [{ name: 'sign_up', by: 'address', perMinute: 5 }],
})

export const logIn = signIn.post('log_in', '/login', {
  summary: 'Sign in with email and password',
  description: 'Sets the session cookies, or returns a challenge when a second factor is required.',
  body: z.strictObject({ email: Email, password: Password, end_other_sessions: z.boolean().default(false) }),
  example: { email: 'ada@example.com', password: EXAMPLE.password },
  answers: { 200: z.union([IssuedSession, SecondFactorStep]) },
  refuses: [400, 401, 403, 429],
  rates: [{ name: 'log_in', by: 'address', perMinute: 10 }],
})

export const logOut = route({
  id: 'log_out',
  method: 'POST',
  path: '/v1/auth/logout',
  summary: 'End the session',
  description:
    'Without an active session it only clears the cookies. With an identity provider, the answer has the URL at ' +
    "which the provider's session ends.",
  credentials: ['session', 'public'],
  permission: null,
  audit: 'auth.logout',
  answers: { 204: null, 200: z.strictObject({ logout_url: z.url() }) },
  refuses: [403],
})

export const getCurrentUser = route({
  id: 'get_current_user',
  method: 'GET',
  path: '/v1/auth/me',
  summary: 'Get the signed-in user',
  credentials: ['session'],
  permission: null,
  secretFields: ['csrf_token'],
  answers: { 200: CurrentUser },
  refuses: [401],
})

const own = routesUnder({
  path: '/v1',
  credentials: ['session'],
  permission: 'self',
  isRefusedToSupport: true,
})

export const requestEmailVerification = own.post('request_email_verification', '/auth/email-verification', {
  summary: 'Resend the verification email',
  audit: 'auth.email_verification_requested',
  answers: { 202: MailSent },
  refuses: [409, 503],
  rates: [
    { name: 'email_verification_minute', by: 'user', perMinute: 1 },
    { name: 'email_verification_hour', by: 'user', perHour: 5 },
  ],
})

const addresses = routesUnder({
  path: '/v1/auth',
  credentials: ['public'],
  permission: null,
  budget: 'none',
})

export const confirmEmailVerification = addresses.post('confirm_email_verification', '/email-verification/confirm', {
  summary: 'Verify an email address with the emailed token',
  description:
    'Opens no session. Removes what was created before the verification: sessions, tokens, second factor, linked ' +
    'providers, other members, invitations, SSH keys. With the session cookie of this user, nothing is removed.',
  body: z.strictObject({ token: MailedToken }),
  example: { token: 'the-token-of-the-mail' },
  answers: { 200: z.strictObject({ email: z.string() }) },
  rates: [{ name: 'email_verification_confirm', by: 'address', perMinute: 20 }],
})

export const requestPasswordReset = addresses.post('request_password_reset', '/password-reset', {
  summary: 'Send an email with a link for choosing a new password',
  description: 'The answer is always the same.',
  body: z.strictObject({ email: Email }),
  example: { email: 'ada@example.com' },
  answers: { 202: MailSent },
  refuses: [400],
  rates: [
    { name: 'password_reset_address', by: 'address', perMinute: 5 },
    { name: 'password_reset_email', by: 'email', perHour: 3 },
  ],
})

export const confirmPasswordReset = addresses.post('confirm_password_reset', '/password-reset/confirm', {
  summary: 'Set a new password with the emailed token',
  description:
    'Ends every session and verifies the address. The second factor still applies at the next sign-in. If nobody ' +
    'had verified the address before, everything created until then is removed: tokens, second factor, linked ' +
    'providers, other members, invitations, SSH keys.',
  body: z.strictObject({
    token: MailedToken,
    password: Password,
    end_tokens: z.boolean().default(true).describe('Whether to revoke your API tokens in all accounts.'),
  }),
  example: { token: 'the-token-of-the-mail', password: EXAMPLE.password },
  answers: { 204: null },
  refuses: [400],
  rates: [{ name: 'password_reset_confirm', by: 'address', perMinute: 10 }],
})

export const changePassword = own.put('change_password', '/account/password', {
  summary: 'Change your password',
  description: 'Requires the current password, and a second factor if one is set up. Ends your other sessions.',
  audit: 'auth.password_changed',
  body: z.strictObject({
    current_password: Password,
    password: Password,
    code: SecondFactorCode.optional(),
    recovery_code: RecoveryCode.optional(),
  }),
  example: { current_password: 'an old walk in the rain', password: EXAMPLE.password, code: EXAMPLE.code },
  answers: { 204: null },
  rates: [{ name: 'password_change', by: 'user', perMinute: 10 }],
})

export const SIGN_IN_ROUTES = [
  signUp,
  logIn,
  logOut,
  getCurrentUser,
  requestEmailVerification,
  confirmEmailVerification,
  requestPasswordReset,
  confirmPasswordReset,
  changePassword,
] as const
