import type { IdentityParts } from '../../identity/parts.ts'
import { noun } from '../../kit/noun.ts'
import { signInEndpoints } from './endpoints.ts'
import { passwordEndpoints } from './passwords.ts'

export const signIn = noun<IdentityParts>({
  name: 'sign_in',
  endpoints: (parts) => [...signInEndpoints(parts), ...passwordEndpoints(parts)],
})
