/** Identity providers: their presentation in the portal, and sign-in through them. */
import { z } from 'zod'
import { route } from '../kit/define.ts'
import { routesUnder } from '../kit/verbs.ts'
import { ObjectName } from '../kit/fields.ts'

const Connection = z
  .strictObject({ name: z.string(), display_name: z.string(), icon: z.string() })
  .meta({ id: 'IdentityProviderConnection' })
const IdentityProvider = z
  .strictObject({
    name: z.string(),
    display_name: z.string(),
    icon: z.string().optional(),
    silent_sign_in: z.boolean(),
    connections: z.array(Connection),
  })
  .meta({ id: 'IdentityProvider' })
export const IdentityProviderStatus = z
  .strictObject({
    configured: z.boolean(),
    display_name: z.string().optional(),
    icon: z.string().optional(),
    silent_sign_in: z.boolean().optional(),
    connections: z.array(Connection),
    providers: z.array(IdentityProvider),
  })
  .meta({ id: 'IdentityProviderStatus' })

/** These routes accept text of any form; handlers check it. Browsers navigate to them, scripts never call them. */
const Text = z.string().max(2048).optional()
const StartQuery = z.strictObject({
  return_to: Text,
  prompt: z.enum(['none', 'login']).optional(),
  coupon: Text,
  provider: Text,
  connection: Text,
})

/** Providers add their own parameters (`iss`, `session_state`, …). */
const CallbackQuery = z.looseObject({
  provider: Text,
  state: Text,
  code: z.string().max(8192).optional(),
  error: Text,
  error_description: Text,
})

const signIn = routesUnder({
  path: '/v1/auth/oidc',
  credentials: ['public'],
  permission: null,
  budget: 'none',
})

export const getIdentityProviderStatus = signIn.get('get_identity_provider_status', '', {
  summary: 'List the identity providers for sign-in',
  answers: { 200: IdentityProviderStatus },
})
export const startIdentityProviderLogin = signIn.get('start_identity_provider_login', '/login', {
  summary: 'Sign in with an identity provider',
  query: StartQuery,
  answers: { 302: null },
  refuses: [400, 503],
  rates: [{ name: 'oidc_login', by: 'address', perMinute: 20 }],
})
export const startIdentityProviderSignup = signIn.get('start_identity_provider_signup', '/signup', {
  summary: 'Sign up with an identity provider',
  query: StartQuery,
  answers: { 302: null },
  refuses: [400, 503],
  rates: [{ name: 'oidc_signup', by: 'address', perMinute: 20 }],
})
export const finishIdentityProviderLogin = signIn.get('finish_identity_provider_login', '/callback', {
  summary: 'Complete a sign-in after the redirect of the identity provider',
  query: CallbackQuery,
  answers: { 302: null },
  refuses: [503],
  rates: [{ name: 'oidc_callback', by: 'address', perMinute: 10 }],
})
export const finishIdentityProviderLoginAtProvider = signIn.get(
  'finish_identity_provider_login_at_provider',
  '/callback/{provider}',
  {
    summary: 'Complete a sign-in after the redirect of a named provider',
    params: z.strictObject({ provider: ObjectName }),
    query: CallbackQuery,
    answers: { 302: null },
    refuses: [503],
    rates: [{ name: 'oidc_callback_at_provider', by: 'address', perMinute: 10 }],
  },
)
export const unlinkSignInIdentity = route({
  id: 'unlink_sign_in_identity',
  method: 'DELETE',
  path: '/v1/account/identities/{id}',
  summary: 'Unlink a sign-in identity',
  credentials: ['session'],
  permission: 'self',
  isRefusedToSupport: true,
  audit: 'account.identity_unlinked',
  isDestructive: true,
  params: z.strictObject({ id: ObjectName }),
  answers: { 204: null },
  refuses: [404, 409],
})

export const IDENTITY_PROVIDER_ROUTES = [
  getIdentityProviderStatus,
  startIdentityProviderLogin,
  startIdentityProviderSignup,
  finishIdentityProviderLogin,
  finishIdentityProviderLoginAtProvider,
  unlinkSignInIdentity,
] as const
