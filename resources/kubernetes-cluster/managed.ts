/** Managed Kubernetes clusters and their node pools as code. */
import { managed } from '../kit/managed.ts'
import {
  createKubernetesNodePool,
  deleteKubernetesNodePool,
  getKubernetesNodePool,
  NodePoolView,
  updateKubernetesNodePool,
} from '../node-pool/index.ts'
import {
  createKubernetesCluster,
  deleteKubernetesCluster,
  getKubernetesCluster,
  KubernetesClusterView,
  listKubernetesClusters,
  updateKubernetesCluster,
  upgradeKubernetesCluster,
} from './routes.ts'

export const managedKubernetesCluster = managed({
  noun: 'kubernetes_cluster',
  view: KubernetesClusterView,
  routes: {
    list: listKubernetesClusters,
    create: createKubernetesCluster,
    read: getKubernetesCluster,
    remove: deleteKubernetesCluster,
  },
  names: ['name'],
  uniqueIn: 'account',
  changes: [
    {
      by: updateKubernetesCluster,
      sets: ['labels', 'etcd_snapshot_schedule', 'etcd_snapshot_retention', 'is_protected'],
    },
    { by: upgradeKubernetesCluster, sets: ['version'], grows: true, moves: ['kubernetes_version'] },
  ],
  leaves: ['node_pools'],
  fields: { network_id: { refers: 'network' } },
  facts: ['id', 'region', 'kubernetes_version', 'endpoint', 'endpoint_ipv4', 'oidc_issuer_url', 'created_at'],
  moments: ['available_upgrade', 'state', 'health', 'addons', 'node_pools', 'platform', 'active_operation'],
})

export const managedNodePool = managed({
  noun: 'kubernetes_node_pool',
  key: 'node_pool',
  view: NodePoolView,
  routes: { create: createKubernetesNodePool, read: getKubernetesNodePool, remove: deleteKubernetesNodePool },
  parent: {
    field: 'cluster_id',
    refers: 'kubernetes_cluster',
    parameter: 'id',
    own: 'node_pool_id',
    shownIn: { read: getKubernetesCluster, field: 'node_pools' },
  },
  names: ['name'],
  uniqueIn: 'parent',
  changes: [
    {
      by: updateKubernetesNodePool,
      sets: ['count', 'autoscaling', 'labels', 'taints', 'version', 'max_unavailable'],
      rolls: ['version'],
    },
  ],
  fields: { count: { freeWith: 'autoscaling', alias: 'node_count' } },
  facts: ['id'],
  moments: ['state', 'nodes', 'active_operation'],
})
