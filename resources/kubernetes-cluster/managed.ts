/** Managed Kubernetes clusters as code; their node pools are nouns too. */
import { managed } from '../kit/managed.ts'
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
