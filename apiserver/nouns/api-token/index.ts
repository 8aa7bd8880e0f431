import { noun } from '../../kit/noun.ts'
import type { IdentityParts } from '../../identity/parts.ts'
import { apiTokenEndpoints } from './endpoints.ts'

export const apiToken = noun<IdentityParts>({ name: 'api_token', endpoints: apiTokenEndpoints })
