import { noun } from '../../kit/noun.ts'
import type { Parts } from '../../kit/parts.ts'
import { billingEndpoints } from './endpoints.ts'

export const billing = noun<Parts>({ name: 'billing', endpoints: billingEndpoints })
