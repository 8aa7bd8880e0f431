import type { IdentityParts } from '../../identity/parts.ts'
import { noun } from '../../kit/noun.ts'
import type { Parts } from '../../kit/parts.ts'
import { paymentEndpoints } from './endpoints.ts'

export const payment = noun<Parts & Pick<IdentityParts, 'origin'>>({ name: 'payment', endpoints: paymentEndpoints })
