import { NodePool } from '../../resources/node-pool/index.ts'
import { kind } from '../admission/kind.ts'
import { noun } from '../noun.ts'
import { nodePoolAdmission } from './admission.ts'
import { nodePoolEndpoints, type NodePoolParts } from './endpoints.ts'
import { type NodePools, openNodePools } from './node-pools.ts'

export type { NodePools } from './node-pools.ts'
export { requireNodeImage, requireNodePlan } from './rules.ts'

export const nodePool = noun<NodePoolParts, { readonly nodePools: NodePools }>({
  name: 'node_pool',
  kinds: [kind(NodePool, { access: 'write', target: 'node_pool', admission: nodePoolAdmission })],
  open: (parts) => ({ nodePools: openNodePools(parts) }),
  endpoints: nodePoolEndpoints,
})
