/** The account and user behind a credential: public shape and route. */
import { z } from 'zod'
import { PERMISSIONS, ROLES } from '../../domain/permissions.ts'
import { route } from '../kit/define.ts'
import { Uuid } from '../kit/shapes.ts'

const Account = z
  .strictObject({
    id: Uuid.describe('Id of the account.'),
    name: z.string().describe('Name of the account.'),
    namespace: z.string().describe('Kubernetes namespace with the resources of the account.'),
    user_id: Uuid.describe('User who calls, or who created the calling token.'),
    email: z.string().describe('Email address of that user.'),
    role: z.enum(ROLES).describe('Role of that user in the account.'),
    permissions: z
      .array(z.enum(PERMISSIONS))
      .describe('Permissions of the credential: those of the role, limited by the scope.'),
    token: z
      .strictObject({ id: Uuid.describe('Id of the token.'), name: z.string().describe('Name of the token.') })
      .nullable()
      .describe('The calling API token; null for a session.'),
  })
  .meta({ id: 'Account' })

export const getAccount = route({
  id: 'get_account',
  method: 'GET',
  path: '/v1/account',
  summary: 'Get the current account and user',
  description: 'Every credential may call it, whatever its scope.',
  credentials: ['token', 'session'],
  permission: null,
  answers: { 200: z.strictObject({ account: Account }) },
})

export const ACCOUNT_ROUTES = [getAccount] as const
