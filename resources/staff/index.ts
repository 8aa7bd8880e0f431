/** Staff: their own sign-in, and their actions on accounts and users. Served on the operator listener only. */
import { z } from 'zod'
import { ROLES, STAFF_ROLES, SUPPORT_MODES } from '../../domain/permissions.ts'
import { AuditIntegrity } from '../audit/index.ts'
import { Credit } from '../credit/index.ts'
import { forOperators, route } from '../kit/define.ts'
import { EXAMPLE } from '../kit/examples.ts'
import { Email, EMAIL_LENGTH_MAXIMUM, Impersonation, Password } from '../identity/index.ts'
import { SearchedText } from '../kit/filters.ts'
import { completeListOf, DateTime, pageOf, PageQuery, Uuid } from '../kit/shapes.ts'
import { routesUnder, verbsOf } from '../kit/verbs.ts'
import { ObjectName, TicketReference } from '../kit/fields.ts'

const Staff = z
  .strictObject({ id: Uuid, email: z.string(), name: z.string(), role: z.enum(STAFF_ROLES) })
  .meta({ id: 'Staff' })
const StaffSession = z
  .strictObject({ staff: Staff, csrf_token: z.string(), expires_at: DateTime })
  .meta({ id: 'StaffSession' })
const Challenge = z
  .strictObject({
    mfa_required: z.literal(true),
    mfa_step: z.literal('verify'),
    challenge: z.string(),
    challenge_expires_at: DateTime,
  })
  .meta({ id: 'StaffChallenge' })
const Account = z
  .strictObject({
    id: Uuid,
    name: z.string(),
    created_at: DateTime,
    owner_email: z.string().nullable(),
    member_count: z.int(),
    suspended_for_payment_at: DateTime.nullable(),
    suspended_by_staff_at: DateTime.nullable(),
    requires_second_factor: z.boolean(),
    credit_balance_cents: z.int(),
  })
  .meta({ id: 'StaffAccount' })
export const AccountMember = z
  .strictObject({
    user_id: Uuid,
    email: z.string(),
    name: z.string().nullable(),
    role: z.enum(ROLES),
    second_factor_enabled: z.boolean(),
    joined_at: DateTime,
    last_active_at: DateTime.nullable(),
    disabled_at: DateTime.nullable().describe('Time at which staff disabled the user.'),
  })
  .meta({ id: 'StaffAccountMember' })
const Coupon = z
  .strictObject({
    id: Uuid,
    code: z.string(),
    label: z.string(),
    amount_cents: z.int(),
    valid_from: DateTime.nullable(),
    valid_until: DateTime.nullable(),
    max_redemptions: z.int().nullable(),
    redemptions: z.int(),
    credit_days: z.int().nullable(),
    is_active: z.boolean(),
    created_at: DateTime,
  })
  .meta({ id: 'Coupon' })
const SupportSession = z
  .strictObject({
    id: Uuid,
    account_id: Uuid,
    staff_email: z.string(),
    mode: z.enum(SUPPORT_MODES),
    reason: z.string(),
    ticket: z.string().nullable(),
    created_at: DateTime,
    redeemed_at: DateTime.nullable(),
    expires_at: DateTime,
  })
  .meta({ id: 'SupportSession' })
const StaffAuditEntry = z
  .strictObject({
    id: Uuid,
    sequence: z.int(),
    at: DateTime,
    actor_email: z.string(),
    actor_kind: z.enum(['staff', 'operator', 'system']),
    staff_id: z.string().nullable(),
    account_id: z.string().nullable(),
    action: z.string(),
    resource_type: z.string(),
    resource_id: z.string(),
    detail: z.record(z.string(), z.string()),
    source_ip: z.string(),
    user_agent: z.string(),
    request_id: z.string(),
  })
  .meta({ id: 'StaffAuditEntry' })

const Reason = z.strictObject({ reason: z.string().trim().min(1).max(1000) })
const AccountParams = z.strictObject({ account_id: ObjectName })
const UserParams = z.strictObject({ user_id: ObjectName })
const IdParams = z.strictObject({ id: ObjectName })
const Cents = z.int().min(1).max(1_000_000_000)

const logins = routesUnder({
  path: '/v1/admin/auth',
  audience: 'operator',
  credentials: ['public'],
  permission: null,
  budget: 'none',
})

export const logInStaff = logins.post('log_in_staff', '/login', {
  summary: 'Sign in as staff',
  body: z.strictObject({ email: Email, password: Password }),
  example: { email: 'staff@example.com', password: EXAMPLE.password },
  answers: { 200: Challenge },
  refuses: [400, 401],
  rates: [{ name: 'log_in_staff', by: 'address', perMinute: 10 }],
})
export const verifyStaffSecondFactor = logins.post('verify_staff_second_factor', '/login/mfa', {
  summary: 'Finish signing in as staff',
  body: z.strictObject({
    challenge: z.string().min(1).max(2048),
    code: z.string().regex(/^\d{6}$/, 'must be six digits'),
  }),
  example: { challenge: 'the-challenge-of-the-login', code: EXAMPLE.code },
  answers: { 200: StaffSession },
  refuses: [400, 401, 503],
  rates: [{ name: 'staff_second_factor', by: 'address', perMinute: 10 }],
})
export const logOutStaff = route({
  audience: 'operator',
  credentials: ['operator', 'public'],
  permission: null,
  id: 'log_out_staff',
  method: 'POST',
  path: '/v1/admin/auth/logout',
  summary: 'End the staff session',
  answers: { 204: null },
})
export const getCurrentStaff = route({
  ...forOperators('any'),
  id: 'get_current_staff',
  method: 'GET',
  path: '/v1/admin/auth/me',
  summary: 'Get the signed-in staff member',
  secretFields: ['csrf_token'],
  answers: { 200: z.strictObject({ staff: Staff, csrf_token: z.string() }) },
  refuses: [403],
})

const accounts = routesUnder({ path: '/v1/admin/accounts', staff: { reads: 'any', changes: 'operations' } })

export const listAccountsAsStaff = accounts.get('list_accounts_as_staff', '', {
  summary: 'List accounts',
  query: PageQuery.extend({
    q: SearchedText.optional().describe('Part of the id, the name, or the address of the owner.'),
    email: z.string().max(EMAIL_LENGTH_MAXIMUM).optional(),
    name: z.string().max(200).optional(),
    id: ObjectName.optional(),
  }),
  answers: { 200: pageOf(Account) },
})
export const getAccountAsStaff = accounts.get('get_account_as_staff', '/{account_id}', {
  summary: 'Get an account',
  params: AccountParams,
  answers: { 200: Account },
})
export const suspendAccount = accounts.post('suspend_account', '/{account_id}/suspend', {
  summary: 'Suspend an account',
  description: 'The account can create nothing; running resources are not stopped.',
  audit: 'account.suspended',
  params: AccountParams,
  body: Reason,
  example: { reason: EXAMPLE.reason },
  answers: { 200: Account },
})
export const unsuspendAccount = accounts.post('unsuspend_account', '/{account_id}/unsuspend', {
  summary: 'Lift the suspension of an account',
  audit: 'account.unsuspended',
  params: AccountParams,
  answers: { 200: Account },
})
export const listAccountMembers = accounts.get('list_account_members', '/{account_id}/members', {
  summary: 'List the members of an account',
  description: 'Each read is in the audit log of the account. Nothing else of the account is shown without consent.',
  staffRole: 'support',
  audit: 'account.members_read',
  params: AccountParams,
  answers: { 200: completeListOf(AccountMember) },
})
export const listAccountCredits = accounts.get('list_account_credits', '/{account_id}/credits', {
  summary: 'List the credits of an account',
  params: AccountParams,
  query: PageQuery,
  answers: { 200: pageOf(Credit) },
})
export const grantCredit = accounts.post('grant_credit', '/{account_id}/credits', {
  summary: 'Grant credit to an account',
  staffRole: 'finance',
  audit: 'account.credit_granted',
  params: AccountParams,
  body: z.strictObject({
    label: z.string().trim().min(1).max(200),
    amount_cents: Cents,
    expires_at: DateTime.nullable().optional(),
  }),
  example: { label: 'Sorry for the outage', amount_cents: 1000, expires_at: null },
  answers: { 201: z.strictObject({ credit: Credit }) },
})
export const revokeCredit = accounts.delete('revoke_credit', '/{account_id}/credits/{id}', {
  summary: 'Revoke credit of an account',
  staffRole: 'finance',
  audit: 'account.credit_revoked',
  params: z.strictObject({ ...AccountParams.shape, ...IdParams.shape }),
})
export const setAccountQuota = accounts.put('set_account_quota', '/{account_id}/quotas/{name}', {
  summary: 'Update a quota of an account',
  audit: 'account.quota_changed',
  params: z.strictObject({ ...AccountParams.shape, name: z.string().max(63) }),
  body: z.strictObject({ limit: z.int().min(0).max(Number.MAX_SAFE_INTEGER) }),
  example: { limit: 50 },
  answers: { 200: z.strictObject({ name: z.string(), limit: z.int(), used: z.int(), scope: z.literal('account') }) },
  refuses: [400, 404],
})

const users = routesUnder({ path: '/v1/admin/users', staff: 'operations' })

export const disableUser = users.post('disable_user', '/{user_id}/disable', {
  summary: 'Disable a user',
  description: "Ends the user's sessions and disables their tokens.",
  audit: 'user.disabled',
  params: UserParams,
  body: Reason,
  example: { reason: EXAMPLE.reason },
  answers: { 204: null },
})
export const enableUser = users.post('enable_user', '/{user_id}/enable', {
  summary: 'Enable a user',
  audit: 'user.enabled',
  params: UserParams,
  body: Reason,
  example: { reason: EXAMPLE.reason },
  answers: { 204: null },
})
export const resetUserSecondFactor = users.post('reset_user_second_factor', '/{user_id}/reset-second-factor', {
  summary: 'Remove the second factor of a user',
  description: "Ends the user's sessions.",
  staffRole: 'support',
  audit: 'user.second_factor_reset',
  isDestructive: true,
  params: UserParams,
  body: Reason,
  example: { reason: EXAMPLE.reason },
  answers: { 204: null },
})

const coupons = verbsOf({ path: '/v1/admin/coupons', noun: 'coupon', view: Coupon, staff: 'finance' })

export const listCoupons = coupons.list('list_coupons', { summary: 'List coupons' })
const CouponFields = {
  valid_from: DateTime.nullable().optional(),
  valid_until: DateTime.nullable().optional(),
  max_redemptions: z.int().min(1).max(2_147_483_647).nullable().optional(),
  credit_days: z.int().min(1).max(3650).nullable().optional(),
  is_active: z.boolean().optional(),
}
export const createCoupon = coupons.create('create_coupon', {
  summary: 'Create a coupon',
  body: z.strictObject({
    code: z.string().regex(/^[A-Za-z0-9_-]{3,32}$/, 'must be 3 to 32 letters, digits, dashes or underscores'),
    amount_cents: Cents,
    ...CouponFields,
  }),
  example: {
    code: 'WELCOME',
    amount_cents: 1000,
    valid_from: '2026-01-01T00:00:00Z',
    valid_until: '2026-12-31T00:00:00Z',
    max_redemptions: 100,
    credit_days: 60,
    is_active: true,
  },
})
export const updateCoupon = coupons.change('update_coupon', {
  summary: 'Update a coupon',
  params: IdParams,
  body: z.strictObject(CouponFields),
  refuses: [400, 404],
})
export const createSupportSession = accounts.post('create_support_session', '/{account_id}/support-sessions', {
  summary: 'Open a support session in an account',
  staffRole: 'support',
  audit: 'support.session_issued',
  params: AccountParams,
  body: z.strictObject({
    mode: z.enum(SUPPORT_MODES),
    reason: z.string().trim().min(1).max(1000),
    ticket: TicketReference,
  }),
  example: { mode: 'read_only', reason: 'The console of web stays dark.', ticket: 'Ticket 1024' },
  secretFields: ['code', 'handoff_url'],
  answers: {
    201: z.strictObject({
      code: z.string(),
      handoff_url: z.string(),
      expires_at: DateTime,
      impersonation: Impersonation,
    }),
  },
})

const support = routesUnder({ path: '/v1/admin', staff: 'support' })

export const listSupportSessions = support.get('list_support_sessions', '/support-sessions', {
  summary: 'List support sessions',
  answers: { 200: completeListOf(SupportSession) },
})
export const endSupportSession = support.delete('end_support_session', '/support-sessions/{id}', {
  summary: 'End a support session',
  audit: 'support.session_ended',
  params: IdParams,
  refuses: [404],
})
export const listStaffAuditEntries = support.get('list_staff_audit_entries', '/audit', {
  summary: 'List the actions of staff',
  query: PageQuery.extend({
    account_id: ObjectName.optional(),
    action: z.string().max(100).optional(),
    from: DateTime.optional(),
    to: DateTime.optional(),
  }),
  answers: { 200: pageOf(StaffAuditEntry) },
})
const AuditVerification = AuditIntegrity.extend({
  checkpoint_at: DateTime.nullable().describe(
    'Time of the newest checkpoint used for comparison; null when there is none.',
  ),
}).meta({ id: 'AuditVerification' })
export const verifyAuditChain = support.post('verify_audit_chain', '/audit/verify', {
  summary: 'Verify an audit chain now',
  description:
    'Verifies the chain of an account; without an account, the chain of staff and operator actions. The chain is ' +
    'also compared with the newest checkpoint in object storage. While object storage does not answer, no result ' +
    'is returned.',
  audit: 'audit.verify',
  body: z.strictObject({ account_id: ObjectName.optional() }),
  example: { account_id: EXAMPLE.id },
  answers: { 200: AuditVerification },
  refuses: [400, 404],
})

export const STAFF_ROUTES = [
  logInStaff,
  verifyStaffSecondFactor,
  logOutStaff,
  getCurrentStaff,
  listAccountsAsStaff,
  getAccountAsStaff,
  suspendAccount,
  unsuspendAccount,
  listAccountMembers,
  listAccountCredits,
  grantCredit,
  revokeCredit,
  setAccountQuota,
  disableUser,
  enableUser,
  resetUserSecondFactor,
  listCoupons,
  createCoupon,
  updateCoupon,
  createSupportSession,
  listSupportSessions,
  endSupportSession,
  listStaffAuditEntries,
  verifyAuditChain,
] as const
