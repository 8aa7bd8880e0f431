import { noun } from '../noun.ts'
import type { Parts } from '../parts.ts'
import { billingEndpoints } from './endpoints.ts'

export const billing = noun<Parts>({ name: 'billing', endpoints: billingEndpoints })
