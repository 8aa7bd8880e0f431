import { noun } from '../../kit/noun.ts'
import type { IdentityParts } from '../../identity/parts.ts'
import { secondFactorEndpoints } from './endpoints.ts'

export { requireProof } from './endpoints.ts'

export const secondFactor = noun<IdentityParts>({ name: 'second_factor', endpoints: secondFactorEndpoints })
