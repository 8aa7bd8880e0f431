import type { Nodes } from '../node/index.ts'
import { noun } from '../../kit/noun.ts'
import type { Parts } from '../../kit/parts.ts'
import { repairEndpoints } from './endpoints.ts'

export const repair = noun<Parts & { readonly nodes: Nodes }>({
  name: 'repair',
  endpoints: (parts) => repairEndpoints(parts, parts.nodes),
})
