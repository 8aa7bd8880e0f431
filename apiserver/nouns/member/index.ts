import { noun } from '../../kit/noun.ts'
import type { IdentityParts } from '../../identity/parts.ts'
import { memberEndpoints } from './endpoints.ts'

export const member = noun<IdentityParts>({ name: 'member', endpoints: memberEndpoints })
