import { noun } from '../../kit/noun.ts'
import type { IdentityParts } from '../../identity/parts.ts'
import { sessionEndpoints } from './endpoints.ts'

export const session = noun<IdentityParts>({ name: 'session', endpoints: sessionEndpoints })
