/** Members of an account and invitations: public shapes and routes. */
import { z } from 'zod'
import { ROLES } from '../../domain/permissions.ts'
import { route } from '../define.ts'
import { EXAMPLE } from '../examples.ts'
import { Email, IssuedSession, MailedToken, Password, SecondFactorStep } from '../identity/index.ts'
import { completeListOf, DateTime, Uuid } from '../shapes.ts'

const AREA = 'Members and invitations'
const SIGN_IN_AREA = 'Sign-up, sign-in and sessions'

const GivenRole = z.enum(['admin', 'member', 'viewer'])
export const Member = z
  .strictObject({
    user_id: Uuid,
    email: z.string(),
    name: z.string().nullable(),
    role: z.enum(ROLES),
    second_factor_enabled: z.boolean(),
    identity_providers: z.array(z.string()),
    joined_at: DateTime,
    last_active_at: DateTime.nullable(),
    is_self: z.boolean(),
  })
  .meta({ id: 'Member' })
export const Invitation = z
  .strictObject({
    id: Uuid,
    email: z.string(),
    role: GivenRole,
    state: z.enum(['pending', 'accepted', 'revoked', 'expired']),
    invited_by_email: z.string(),
    created_at: DateTime,
    expires_at: DateTime,
  })
  .meta({ id: 'Invitation' })
const UserParams = z.strictObject({ user_id: z.string().max(253) })
const InvitationParams = z.strictObject({ id: z.string().max(253) })
const manage = { area: AREA, credentials: ['session'], permission: 'members.manage', isRefusedToSupport: true } as const

export const listMembers = route({
  id: 'list_members',
  method: 'GET',
  path: '/v1/account/members',
  area: AREA,
  summary: 'List members',
  permission: 'read',
  answers: { 200: completeListOf(Member) },
})
export const updateMember = route({
  ...manage,
  id: 'update_member',
  method: 'PATCH',
  path: '/v1/account/members/{user_id}',
  summary: 'Change the role of a member',
  audit: 'account.member_role_changed',
  description: 'Not of the owner, and not of yourself.',
  params: UserParams,
  body: z.strictObject({ role: GivenRole }),
  example: { role: 'member' },
  answers: { 200: z.strictObject({ member: Member }) },
  refuses: [400, 404, 409],
})
export const removeMember = route({
  ...manage,
  id: 'remove_member',
  method: 'DELETE',
  path: '/v1/account/members/{user_id}',
  summary: 'Remove a member, or leave',
  audit: 'account.member_removed',
  isDestructive: true,
  description: 'Ends their sessions and tokens for this account. Everyone but the owner may leave.',
  selfParameter: 'user_id',
  params: UserParams,
  answers: { 204: null },
  refuses: [404],
})
export const listInvitations = route({
  ...manage,
  id: 'list_invitations',
  method: 'GET',
  path: '/v1/account/invitations',
  summary: 'List invitations',
  description: 'Pending ones, and the rest for 30 days.',
  answers: { 200: completeListOf(Invitation) },
})
export const createInvitation = route({
  ...manage,
  id: 'create_invitation',
  method: 'POST',
  path: '/v1/account/invitations',
  summary: 'Invite somebody by mail',
  audit: 'account.member_invited',
  requiresVerifiedEmail: true,
  body: z.strictObject({ email: Email, role: GivenRole }),
  example: { email: 'grace@example.com', role: 'member' },
  answers: { 201: z.strictObject({ invitation: Invitation }) },
  refuses: [400, 409, 422, 503],
  rates: [{ name: 'invitation', by: 'account', perHour: 100 }],
})
export const resendInvitation = route({
  ...manage,
  id: 'resend_invitation',
  method: 'POST',
  path: '/v1/account/invitations/{id}/resend',
  summary: 'Mail a new link',
  description: 'The link that was mailed before no longer works.',
  audit: 'account.invitation_resent',
  params: InvitationParams,
  answers: { 200: z.strictObject({ invitation: Invitation }) },
  refuses: [404, 409, 503],
  rates: [{ name: 'invitation', by: 'account', perHour: 100 }],
})
export const revokeInvitation = route({
  ...manage,
  id: 'revoke_invitation',
  method: 'DELETE',
  path: '/v1/account/invitations/{id}',
  summary: 'Revoke an invitation',
  audit: 'account.invitation_revoked',
  isDestructive: true,
  params: InvitationParams,
  answers: { 204: null },
  refuses: [404, 409],
})

export const lookUpInvitation = route({
  id: 'look_up_invitation',
  method: 'GET',
  path: '/v1/auth/invitation',
  area: SIGN_IN_AREA,
  summary: 'What an invitation is for',
  credentials: ['public'],
  permission: null,
  budget: 'none',
  query: z.strictObject({ invitation: MailedToken }),
  answers: {
    200: z.strictObject({ email: z.string(), role: GivenRole, account_name: z.string(), expires_at: DateTime }),
  },
  refuses: [400, 404],
  rates: [{ name: 'invitation_lookup', by: 'address', perMinute: 20 }],
})
export const acceptInvitation = route({
  id: 'accept_invitation',
  method: 'POST',
  path: '/v1/auth/accept-invitation',
  area: SIGN_IN_AREA,
  summary: 'Join the account that invited you',
  credentials: ['public'],
  permission: null,
  budget: 'none',
  description:
    'An address without a user gets one with this password; an address with a user proves itself by its ' +
    'password. Where a second factor is due the answer is a challenge, as at sign-in.',
  body: z.strictObject({ invitation: MailedToken, password: Password }),
  example: { invitation: 'the-token-of-the-mail', password: EXAMPLE.password },
  answers: { 201: IssuedSession, 200: SecondFactorStep },
  refuses: [400, 404, 409],
  rates: [{ name: 'invitation_accept', by: 'address', perMinute: 10 }],
})

export const MEMBER_ROUTES = [
  listMembers,
  updateMember,
  removeMember,
  listInvitations,
  createInvitation,
  resendInvitation,
  revokeInvitation,
  lookUpInvitation,
  acceptInvitation,
] as const
