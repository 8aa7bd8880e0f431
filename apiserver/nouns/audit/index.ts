import { noun } from '../../kit/noun.ts'
import type { IdentityParts } from '../../identity/parts.ts'
import { auditEndpoints } from './endpoints.ts'

export { integrityView } from './endpoints.ts'
export * from './testimony.ts'

export const audit = noun<IdentityParts>({ name: 'audit', endpoints: auditEndpoints })
