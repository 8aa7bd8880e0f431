/** Second factors: public shapes and routes, at sign-in and in the account. */
import { z } from 'zod'
import { exactlyOneOf } from '../kit/define.ts'
import { EXAMPLE } from '../kit/examples.ts'
import { IssuedSession, RecoveryCode, SecondFactorCode } from '../identity/index.ts'
import { DateTime } from '../kit/shapes.ts'
import { routesUnder } from '../kit/verbs.ts'

/** Challenges are sealed strings of a few hundred characters. */
const Challenge = z.string().min(1).max(2048)
const PROOFS = ['code', 'recovery_code'] as const

export const SecondFactorProof = exactlyOneOf(
  z.strictObject({ code: SecondFactorCode.optional(), recovery_code: RecoveryCode.optional() }),
  PROOFS,
).meta({ id: 'SecondFactorProof' })
const SecondFactorLoginRequest = exactlyOneOf(
  z.strictObject({
    challenge: Challenge,
    code: SecondFactorCode.optional(),
    recovery_code: RecoveryCode.optional(),
  }),
  PROOFS,
).meta({ id: 'SecondFactorLoginRequest' })
export const SecondFactorStatus = z
  .strictObject({
    totp_enabled: z.boolean(),
    totp_pending: z.boolean(),
    enabled_at: DateTime.nullable(),
    recovery_codes_remaining: z.int().min(0),
    required_by_account: z.boolean(),
    available: z.boolean(),
  })
  .meta({ id: 'SecondFactorStatus' })
export const AuthenticatorSetup = z
  .strictObject({ secret: z.string(), otpauth_uri: z.string(), expires_at: DateTime })
  .meta({ id: 'AuthenticatorSetup' })
export const RecoveryCodes = z.strictObject({ recovery_codes: z.array(z.string()) }).meta({ id: 'RecoveryCodes' })
export const SecondFactorSession = z
  .strictObject({
    ...IssuedSession.shape,
    recovery_codes: z.array(z.string()).optional(),
    recovery_codes_remaining: z.int().min(0).optional(),
    return_to: z.string().optional(),
  })
  .meta({ id: 'SecondFactorSession' })

const logins = routesUnder({
  path: '/v1/auth/login/mfa',
  credentials: ['public'],
  permission: null,
  budget: 'none',
  refuses: [400, 401, 409, 503],
})

export const verifyLoginSecondFactor = logins.post('verify_login_second_factor', '', {
  summary: 'Finish signing in with a second factor',
  body: SecondFactorLoginRequest,
  example: { challenge: 'the-challenge-of-the-login', code: EXAMPLE.code },
  secretFields: ['recovery_codes'],
  answers: { 200: SecondFactorSession },
  rates: [{ name: 'second_factor', by: 'address', perMinute: 10 }],
})
export const startLoginSecondFactorSetup = logins.post('start_login_second_factor_setup', '/enroll', {
  summary: 'Start setting up a second factor at sign-in',
  description:
    'For accounts that require one. Only this answer contains the secret, which is inactive until its first code.',
  body: z.strictObject({ challenge: Challenge }),
  example: { challenge: 'the-challenge-of-the-login' },
  secretFields: ['otpauth_uri', 'secret'],
  answers: { 200: AuthenticatorSetup },
  rates: [{ name: 'second_factor_enroll', by: 'address', perMinute: 10 }],
})
export const finishLoginSecondFactorSetup = logins.post('finish_login_second_factor_setup', '/enroll/confirm', {
  summary: 'Confirm the second factor and finish signing in',
  body: SecondFactorLoginRequest,
  example: { challenge: 'the-challenge-of-the-login', code: EXAMPLE.code },
  secretFields: ['recovery_codes'],
  answers: { 200: SecondFactorSession },
  rates: [{ name: 'second_factor_confirm', by: 'address', perMinute: 10 }],
})

const factors = routesUnder({
  path: '/v1/account/mfa',
  credentials: ['session'],
  permission: 'self',
  isRefusedToSupport: true,
})

export const getAccountMfa = factors.get('get_account_mfa', '', {
  summary: 'Get your second factor',
  isRefusedToSupport: false,
  answers: { 200: SecondFactorStatus },
})
export const setAccountMfaPolicy = factors.put('set_account_mfa_policy', '/policy', {
  summary: 'Set whether members need a second factor',
  description: 'Only the owner may set it, and only with a second factor. Open sessions continue.',
  permission: 'members.manage',
  audit: 'account.mfa_policy_changed',
  body: z.strictObject({ required: z.boolean() }),
  example: { required: true },
  answers: { 200: SecondFactorStatus },
})
export const replaceAccountRecoveryCodes = factors.post('replace_account_recovery_codes', '/recovery-codes', {
  summary: 'Replace the recovery codes',
  audit: 'account.mfa_recovery_codes_regenerated',
  body: SecondFactorProof,
  example: { code: EXAMPLE.code },
  secretFields: ['recovery_codes'],
  answers: { 200: RecoveryCodes },
  refuses: [400, 404],
  rates: [{ name: 'second_factor_proof', by: 'user', perMinute: 10 }],
})
export const startAccountTotpSetup = factors.post('start_account_totp_setup', '/totp', {
  summary: 'Start setting up an authenticator',
  audit: 'account.mfa_setup_started',
  secretFields: ['otpauth_uri', 'secret'],
  answers: { 200: AuthenticatorSetup },
  refuses: [409, 503],
})
export const disableAccountTotp = factors.delete('disable_account_totp', '/totp', {
  summary: 'Remove the authenticator and all recovery codes',
  audit: 'account.mfa_disabled',
  body: SecondFactorProof,
  example: { code: EXAMPLE.code },
  refuses: [400, 404, 409],
  rates: [{ name: 'second_factor_proof', by: 'user', perMinute: 10 }],
})
export const finishAccountTotpSetup = factors.post('finish_account_totp_setup', '/totp/confirm', {
  summary: 'Confirm the authenticator with its first code',
  audit: 'account.mfa_enabled',
  body: z.strictObject({ code: SecondFactorCode }),
  example: { code: EXAMPLE.code },
  secretFields: ['recovery_codes'],
  answers: { 200: RecoveryCodes },
  rates: [{ name: 'second_factor_proof', by: 'user', perMinute: 10 }],
})

export const SECOND_FACTOR_ROUTES = [
  verifyLoginSecondFactor,
  startLoginSecondFactorSetup,
  finishLoginSecondFactorSetup,
  getAccountMfa,
  setAccountMfaPolicy,
  replaceAccountRecoveryCodes,
  startAccountTotpSetup,
  disableAccountTotp,
  finishAccountTotpSetup,
] as const
