import { noun } from '../../kit/noun.ts'
import type { IdentityParts } from '../../identity/parts.ts'
import { supportEndpoints } from './endpoints.ts'

export { closeSupportSession, impersonationView } from './endpoints.ts'

export const support = noun<IdentityParts>({ name: 'support', endpoints: supportEndpoints })
