/** The account that a credential acts in, and as whom: public shape and route. */
import { z } from 'zod'
import { PERMISSIONS, ROLES } from '../../domain/permissions.ts'
import { route } from '../kit/define.ts'
import { Uuid } from '../kit/shapes.ts'

const Account = z
  .strictObject({
    id: Uuid.describe('Id of the account.'),
    name: z.string().describe('Name of the account.'),
    namespace: z.string().describe('Namespace of Kubernetes that holds what the account has.'),
    user_id: Uuid.describe('Who calls, or made the token that calls.'),
    email: z.string().describe('Address of that person.'),
    role: z.enum(ROLES).describe('Role of that person in the account.'),
    permissions: z.array(z.enum(PERMISSIONS)).describe('What the credential may do: its role, limited by its scope.'),
    token: z
      .strictObject({ id: Uuid.describe('Id of the token.'), name: z.string().describe('Name of the token.') })
      .nullable()
      .describe('The API token that calls; null for a session.'),
  })
  .meta({ id: 'Account' })

export const getAccount = route({
  id: 'get_account',
  method: 'GET',
  path: '/v1/account',
  area: 'Accounts and people',
  summary: 'Read the account that you act in, and as whom',
  description: 'Any credential may ask, whatever its scope.',
  credentials: ['token', 'session'],
  permission: null,
  answers: { 200: z.strictObject({ account: Account }) },
})

export const ACCOUNT_ROUTES = [getAccount] as const
