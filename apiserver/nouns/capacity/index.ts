import { noun } from '../../kit/noun.ts'
import type { Parts } from '../../kit/parts.ts'
import { capacityEndpoints } from './endpoints.ts'

export const capacity = noun<Parts>({ name: 'capacity', endpoints: capacityEndpoints })
