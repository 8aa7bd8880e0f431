import { noun } from '../../kit/noun.ts'
import type { IdentityParts } from '../../identity/parts.ts'
import { identityProviderEndpoints } from './endpoints.ts'

export { linkedIdentityView, logoutUrlOf, PROVIDER_COOKIE } from './endpoints.ts'

export const identityProvider = noun<IdentityParts>({ name: 'identity_provider', endpoints: identityProviderEndpoints })
