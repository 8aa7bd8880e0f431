/** Support consents of customers, and the handoff with which a staff member enters an account. */
import { z } from 'zod'
import { SUPPORT_MODES } from '../../domain/permissions.ts'
import { route } from '../kit/define.ts'
import { Impersonation, User } from '../identity/index.ts'
import { DateTime, Uuid } from '../kit/shapes.ts'
import { verbsOf } from '../kit/verbs.ts'
import { ObjectName, TicketReference } from '../kit/fields.ts'

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

const consents = verbsOf({
  path: '/v1/account/support-consents',
  noun: 'consent',
  view: SupportConsent,
  credentials: ['session'],
  permission: 'members.manage',
  isRefusedToSupport: true,
})

export const listSupportConsents = consents.listWhole('list_support_consents', {
  summary: 'List support consents',
  description: 'Newest first, of the last 90 days.',
})
export const grantSupportConsent = consents.create('grant_support_consent', {
  summary: 'Grant support access to the account',
  audit: 'account.support_consent_granted',
  body: z.strictObject({
    mode: z.enum(SUPPORT_MODES),
    expires_in_hours: z.int().min(1).max(CONSENT_HOURS_MAXIMUM).default(CONSENT_HOURS_DEFAULT),
    reference: TicketReference,
  }),
  example: { mode: 'read_only', expires_in_hours: 24, reference: 'Ticket 1024' },
  answers: { 201: z.strictObject({ support_consent: SupportConsent }) },
})
export const revokeSupportConsent = consents.remove('revoke_support_consent', {
  summary: 'Revoke a support consent',
  description: 'Ends active support sessions of that mode immediately.',
  audit: 'account.support_consent_revoked',
  params: z.strictObject({ id: ObjectName }),
})
export const redeemSupportHandoff = route({
  id: 'redeem_support_handoff',
  method: 'POST',
  path: '/v1/auth/support-handoff',
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
