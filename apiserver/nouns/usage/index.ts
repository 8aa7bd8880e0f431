import { noun } from '../../kit/noun.ts'
import type { Parts } from '../../kit/parts.ts'
import type { Servers } from '../server/index.ts'
import { usageEndpoints } from './endpoints.ts'

export const usage = noun<Parts & { readonly servers: Servers }>({
  name: 'usage',
  endpoints: (parts) => usageEndpoints(parts, parts.servers),
})
