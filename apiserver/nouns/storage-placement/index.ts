import type { Nodes } from '../node/index.ts'
import { noun } from '../../kit/noun.ts'
import type { Parts } from '../../kit/parts.ts'
import { storagePlacementEndpoints } from './endpoints.ts'

export const storagePlacement = noun<Parts & { readonly nodes: Nodes }>({
  name: 'storage-placement',
  endpoints: (parts) => storagePlacementEndpoints(parts, parts.nodes),
})
