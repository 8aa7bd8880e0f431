/** The account that a caller acts in. */
import { noun } from '../../kit/noun.ts'
import type { IdentityParts } from '../../identity/parts.ts'
import { accountEndpoints } from './endpoints.ts'

export const account = noun<Pick<IdentityParts, 'db'>>({ name: 'account', endpoints: accountEndpoints })
