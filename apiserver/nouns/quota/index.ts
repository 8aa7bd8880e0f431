import { noun } from '../../kit/noun.ts'
import type { Parts } from '../../kit/parts.ts'
import { quotaEndpoints } from './endpoints.ts'

export const quota = noun<Pick<Parts, 'db'>>({ name: 'quota', endpoints: quotaEndpoints })
