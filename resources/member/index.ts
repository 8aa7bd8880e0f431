/** Members of an account and invitations: public shapes and routes. */
import { z } from 'zod'
import { ROLES } from '../../domain/permissions.ts'
import { EXAMPLE } from '../kit/examples.ts'
import { Email, IssuedSession, MailedToken, Password, SecondFactorStep } from '../identity/index.ts'
import { completeListOf, DateTime, Uuid } from '../kit/shapes.ts'
import { routesUnder } from '../kit/verbs.ts'
import { ObjectName } from '../kit/fields.ts'

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
const UserParams = z.strictObject({ user_id: ObjectName })
const InvitationParams = z.strictObject({ id: ObjectName })

const members = routesUnder({
  path: '/v1/account',
  credentials: ['session'],
  permission: 'members.manage',
  isRefusedToSupport: true,
})

export const listMembers = members.get('list_members', '/members', {
  summary: 'List members',
  credentials: ['token', 'session'],
  permission: 'read',
  isRefusedToSupport: false,
  answers: { 200: completeListOf(Member) },
})
export const updateMember = members.patch('update_member', '/members/{user_id}', {
  summary: 'Update the role of a member',
  description: "Neither the owner's role nor your own can be changed.",
  audit: 'account.member_role_changed',
  params: UserParams,
  body: z.strictObject({ role: GivenRole }),
  example: { role: 'member' },
  answers: { 200: z.strictObject({ member: Member }) },
})
export const removeMember = members.delete('remove_member', '/members/{user_id}', {
  summary: 'Remove a member or leave the account',
  description: "Ends the member's sessions and tokens for this account. Everyone except the owner may leave.",
  selfParameter: 'user_id',
  audit: 'account.member_removed',
  params: UserParams,
  refuses: [404],
})
export const listInvitations = members.get('list_invitations', '/invitations', {
  summary: 'List invitations',
  description: 'Pending invitations, and others for 30 days.',
  answers: { 200: completeListOf(Invitation) },
})
export const createInvitation = members.post('create_invitation', '/invitations', {
  summary: 'Invite a person by email',
  needs: 'verified',
  audit: 'account.member_invited',
  body: z.strictObject({ email: Email, role: GivenRole }),
  example: { email: 'grace@example.com', role: 'member' },
  answers: { 201: z.strictObject({ invitation: Invitation }) },
  refuses: [400, 409, 422, 503],
  rates: [{ name: 'invitation', by: 'account', perHour: 100 }],
})
export const resendInvitation = members.post('resend_invitation', '/invitations/{id}/resend', {
  summary: 'Resend an invitation with a new link',
  description: 'The previous link no longer works.',
  audit: 'account.invitation_resent',
  params: InvitationParams,
  answers: { 200: z.strictObject({ invitation: Invitation }) },
  refuses: [404, 409, 503],
  rates: [{ name: 'invitation', by: 'account', perHour: 100 }],
})
export const revokeInvitation = members.delete('revoke_invitation', '/invitations/{id}', {
  summary: 'Revoke an invitation',
  audit: 'account.invitation_revoked',
  params: InvitationParams,
})

const invitations = routesUnder({
  path: '/v1/auth',
  credentials: ['public'],
  permission: null,
  budget: 'none',
})

export const lookUpInvitation = invitations.get('look_up_invitation', '/invitation', {
  summary: 'Get the details of an invitation',
  query: z.strictObject({ invitation: MailedToken }),
  answers: {
    200: z.strictObject({ email: z.string(), role: GivenRole, account_name: z.string(), expires_at: DateTime }),
  },
  refuses: [400, 404],
  rates: [{ name: 'invitation_lookup', by: 'address', perMinute: 20 }],
})
export const acceptInvitation = invitations.post('accept_invitation', '/accept-invitation', {
  summary: 'Accept an invitation to an account',
  description:
    'A new email address gets a user with this password; an existing user signs in with their password. When a ' +
    'second factor is required, the answer is a challenge, as at sign-in.',
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
