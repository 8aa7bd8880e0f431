import { noun } from '../../kit/noun.ts'
import type { IdentityParts } from '../../identity/parts.ts'
import { creditEndpoints } from './endpoints.ts'

export { creditView } from './endpoints.ts'

export const credit = noun<IdentityParts>({ name: 'credit', endpoints: creditEndpoints })
