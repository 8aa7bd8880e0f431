/** Accounts of a user and organisations of the identity platform: public shapes and routes. */
import { z } from 'zod'
import { ROLES } from '../../domain/permissions.ts'
import { EXAMPLE } from '../kit/examples.ts'
import { DateTime, Uuid } from '../kit/shapes.ts'
import { routesUnder } from '../kit/verbs.ts'

const PlatformOrganisation = z.strictObject({ id: Uuid, name: z.string() }).meta({ id: 'PlatformOrganisation' })
const OrganisationLink = z
  .strictObject({
    organisation: PlatformOrganisation,
    linked_at: DateTime,
    confirmed_at: DateTime,
    has_owner_seat: z.boolean(),
    is_owner_retained: z.boolean(),
  })
  .meta({ id: 'OrganisationLink' })
const OrganisationMember = z
  .strictObject({
    user_id: Uuid,
    email: z.string(),
    platform_role: z.string(),
    role: z.enum(ROLES),
    is_owner: z.boolean(),
    is_stale: z.boolean(),
    confirmed_at: DateTime,
  })
  .meta({ id: 'OrganisationMember' })
const OrganisationMembership = z
  .strictObject({
    organisation: PlatformOrganisation,
    platform_role: z.string(),
    role: z.enum(['admin', 'member', 'viewer']),
    is_current: z.boolean(),
    is_stale: z.boolean(),
    confirmed_at: DateTime,
    account_id: Uuid.optional(),
  })
  .meta({ id: 'OrganisationMembership' })
const AccountOrganisation = z
  .strictObject({
    link: OrganisationLink.nullable(),
    members: z.array(OrganisationMember),
    candidates: z.array(OrganisationMembership),
    connected: z.boolean(),
  })
  .meta({ id: 'AccountOrganisation' })
const SwitchableAccount = z
  .strictObject({
    id: Uuid,
    name: z.string(),
    role: z.enum(ROLES),
    is_own_account: z.boolean(),
    is_active: z.boolean(),
    organisation: z
      .strictObject({
        id: Uuid,
        name: z.string(),
        platform_role: z.string(),
        is_stale: z.boolean(),
        is_owner_retained: z.boolean(),
        confirmed_at: DateTime.nullable(),
      })
      .nullable(),
  })
  .meta({ id: 'SwitchableAccount' })
const AccountSwitcher = z
  .strictObject({
    items: z.array(SwitchableAccount),
    active_account_id: Uuid,
    organisations: z.array(OrganisationMembership),
    connected: z.boolean(),
    create_organisation_url: z.url().nullable(),
  })
  .meta({ id: 'AccountSwitcher' })

const organisations = routesUnder({ path: '/v1/account/organisation' })

export const getAccountOrganisation = organisations.get('get_account_organisation', '', {
  summary: 'Get the organisation of the account',
  answers: { 200: AccountOrganisation },
})
export const linkAccountOrganisation = organisations.post('link_account_organisation', '', {
  summary: 'Link the account to an organisation',
  description:
    'Only the owner may link it, within an hour of signing in with the platform account. Pending invitations are ' +
    'revoked.',
  credentials: ['session'],
  permission: 'members.manage',
  isRefusedToSupport: true,
  audit: 'organisation.linked',
  body: z.strictObject({ organisation_id: Uuid }),
  example: { organisation_id: EXAMPLE.id },
  answers: { 200: z.strictObject({ link: OrganisationLink }) },
  refuses: [400, 409, 503],
})

const accounts = routesUnder({ path: '/v1/accounts', credentials: ['session'], permission: 'self' })

export const listAccounts = accounts.get('list_accounts', '', {
  summary: 'List accounts that you can switch to',
  answers: { 200: AccountSwitcher },
})
export const switchAccount = accounts.post('switch_account', '/active', {
  summary: 'Switch to another account',
  description: 'All of your sessions switch with the next request.',
  isRefusedToSupport: true,
  audit: 'account.switched',
  body: z
    .strictObject({ account_id: Uuid.optional(), organisation_id: Uuid.optional() })
    .refine(
      (body) => (body.account_id === undefined) !== (body.organisation_id === undefined),
      'needs exactly one of account_id and organisation_id',
    ),
  example: { account_id: EXAMPLE.id },
  answers: { 200: z.strictObject({ account: SwitchableAccount }) },
  refuses: [400, 404, 409, 503],
})

export const ORGANISATION_ROUTES = [
  getAccountOrganisation,
  linkAccountOrganisation,
  listAccounts,
  switchAccount,
] as const
