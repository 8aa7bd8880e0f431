import type { IdentityParts } from '../identity/parts.ts'
import { noun } from '../noun.ts'
import type { Parts } from '../parts.ts'
import { paymentEndpoints } from './endpoints.ts'

export const payment = noun<Parts & Pick<IdentityParts, 'origin'>>({ name: 'payment', endpoints: paymentEndpoints })
