import { noun } from '../../kit/noun.ts'
import type { IdentityParts } from '../../identity/parts.ts'
import { organisationEndpoints } from './endpoints.ts'

export const organisation = noun<IdentityParts>({ name: 'organisation', endpoints: organisationEndpoints })
