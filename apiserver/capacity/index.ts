import { noun } from '../noun.ts'
import type { Parts } from '../parts.ts'
import { capacityEndpoints } from './endpoints.ts'

export const capacity = noun<Parts>({ name: 'capacity', endpoints: capacityEndpoints })
