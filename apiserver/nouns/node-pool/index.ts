import { getKubernetesCluster } from '../../../resources/kubernetes-cluster/index.ts'
import { NodePool } from '../../../resources/node-pool/index.ts'
import { kind } from '../../kit/admission/kind.ts'
import { objectFeed } from '../../kit/feed.ts'
import { noun } from '../../kit/noun.ts'
import { nodePoolAdmission } from './admission.ts'
import { nodePoolEndpoints, type NodePoolParts } from './endpoints.ts'
import { type NodePools, openNodePools } from './objects.ts'

export type { NodePools } from './objects.ts'
export { requireNodeImage, requireNodePlan } from './rules.ts'

export const nodePool = noun<NodePoolParts, { readonly nodePools: NodePools }>({
  name: 'node_pool',
  kinds: [kind(NodePool, { access: 'write', target: 'node_pool', admission: nodePoolAdmission })],
  open: (parts) => ({ nodePools: openNodePools(parts) }),
  endpoints: nodePoolEndpoints,
  // Lists of clusters come without pools.
  feeds: ({ nodePools }) => [objectFeed('node_pool', getKubernetesCluster, nodePools)],
})
