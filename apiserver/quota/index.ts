import { noun } from '../noun.ts'
import type { Parts } from '../parts.ts'
import { quotaEndpoints } from './endpoints.ts'

export const quota = noun<Pick<Parts, 'db'>>({ name: 'quota', endpoints: quotaEndpoints })
