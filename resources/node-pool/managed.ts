/** Node pools as code. */
import { managed } from '../kit/managed.ts'
import {
  createKubernetesNodePool,
  deleteKubernetesNodePool,
  getKubernetesNodePool,
  NodePoolView,
  updateKubernetesNodePool,
} from './routes.ts'

export const managedNodePool = managed({
  noun: 'kubernetes_node_pool',
  key: 'node_pool',
  view: NodePoolView,
  routes: { create: createKubernetesNodePool, read: getKubernetesNodePool, remove: deleteKubernetesNodePool },
  parent: { field: 'cluster_id', refers: 'kubernetes_cluster', parameter: 'id', own: 'node_pool_id' },
  names: ['name'],
  uniqueIn: 'parent',
  changes: [
    {
      by: updateKubernetesNodePool,
      sets: ['count', 'autoscaling', 'labels', 'taints', 'version', 'max_unavailable'],
      rolls: ['version'],
    },
  ],
  fields: { count: { freeWith: 'autoscaling' } },
  facts: ['id'],
  moments: ['state', 'nodes', 'active_operation'],
})
