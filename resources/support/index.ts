/** Support consents of customers, and the handoff by which a member of staff enters an account. */
import { z } from 'zod'
import { SUPPORT_MODES } from '../../domain/permissions.ts'
import { route } from '../define.ts'
import { Impersonation, User } from '../identity/index.ts'
import { completeListOf, DateTime, Uuid } from '../shapes.ts'

const AREA = 'Support consents'
const SIGN_IN_AREA = 'Sign-up, sign-in and sessions'
export const CONSENT_HOURS_DEFAULT = 24
const CONSENT_HOURS_MAXIMUM = 168

export const SupportConsent = z
  .strictObject({
    id: Uuid,
    mode: z.enum(SUPPORT_MODES),
    granted_by_email: z.string(),
    reference: z.string().nullable(),
    created_at: DateTime,
    expires_at: DateTime,
    revoked_at: DateTime.nullable(),
    sessions: z.int(),
  })
  .meta({ id: 'SupportConsent' })
const own = { area: AREA, credentials: ['session'], permission: 'members.manage', isRefusedToSupport: true } as const

export const listSupportConsents = route({
  ...own,
  id: 'list_support_consents',
  method: 'GET',
  path: '/v1/account/support-consents',
  summary: 'List support consents',
  description: 'Newest first, of the last 90 days.',
  answers: { 200: completeListOf(SupportConsent) },
})
export const grantSupportConsent = route({
  ...own,
  id: 'grant_support_consent',
  method: 'POST',
  path: '/v1/account/support-consents',
  summary: 'Let support into the account',
  audit: 'account.support_consent_granted',
  body: z.strictObject({
    mode: z.enum(SUPPORT_MODES),
    expires_in_hours: z.int().min(1).max(CONSENT_HOURS_MAXIMUM).default(CONSENT_HOURS_DEFAULT),
    reference: z.string().trim().max(200).nullable().optional(),
  }),
  example: { mode: 'read_only', expires_in_hours: 24, reference: 'Ticket 1024' },
  answers: { 201: z.strictObject({ support_consent: SupportConsent }) },
  refuses: [400, 409],
})
export const revokeSupportConsent = route({
  ...own,
  id: 'revoke_support_consent',
  method: 'DELETE',
  path: '/v1/account/support-consents/{id}',
  summary: 'Revoke a support consent',
  audit: 'account.support_consent_revoked',
  isDestructive: true,
  description: 'Ends running support sessions of that mode at once.',
  params: z.strictObject({ id: z.string().max(253) }),
  answers: { 204: null },
  refuses: [404, 409],
})
export const redeemSupportHandoff = route({
  id: 'redeem_support_handoff',
  method: 'POST',
  path: '/v1/auth/support-handoff',
  area: SIGN_IN_AREA,
  summary: 'Enter an account with a handoff code',
  credentials: ['public'],
  permission: null,
  budget: 'none',
  description: 'The code comes from the admin console, works once and for two minutes.',
  body: z.strictObject({ code: z.string().min(1).max(512) }),
  example: { code: 'the-code-of-the-handoff' },
  answers: {
    200: z.strictObject({ redirect: z.string(), user: User, impersonation: Impersonation, expires_at: DateTime }),
  },
  refuses: [400, 401],
  rates: [{ name: 'support_handoff', by: 'address', perMinute: 10 }],
})
export const endImpersonation = route({
  id: 'end_impersonation',
  method: 'POST',
  path: '/v1/auth/end-impersonation',
  area: SIGN_IN_AREA,
  summary: 'Leave the account',
  credentials: ['session'],
  permission: null,
  audit: 'support.session_ended',
  answers: { 200: z.strictObject({ redirect: z.string() }) },
  refuses: [409],
})

export const SUPPORT_ROUTES = [
  listSupportConsents,
  grantSupportConsent,
  revokeSupportConsent,
  redeemSupportHandoff,
  endImpersonation,
] as const
