import type { IdentityParts } from '../../identity/parts.ts'
import { noun } from '../../kit/noun.ts'
import { staffAccountEndpoints } from './accounts.ts'
import { couponEndpoints } from './coupons.ts'
import { staffSignInEndpoints } from './sign-in.ts'

export const staff = noun<IdentityParts>({
  name: 'staff',
  endpoints: (parts) => [...staffSignInEndpoints(parts), ...staffAccountEndpoints(parts), ...couponEndpoints(parts)],
})
