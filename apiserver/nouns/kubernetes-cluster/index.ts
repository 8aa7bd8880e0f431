import { KubernetesCluster, listKubernetesClusters } from '../../../resources/kubernetes-cluster/index.ts'
import { kind } from '../../kit/admission/kind.ts'
import { objectFeed, zonesOf } from '../../kit/feed.ts'
import { noun } from '../../kit/noun.ts'
import { kubernetesClusterChanges } from '../../../changes/kubernetes-cluster.ts'
import { admissionOf } from '../../kit/admission/changes.ts'
import { type KubernetesClusters, openKubernetesClusters } from './objects.ts'
import { kubernetesClusterEndpoints, type KubernetesClusterParts } from './endpoints.ts'

export {
  type AccessParts,
  grantOf,
  type Kubeconfig,
  kubeconfigText,
  ownToken,
  requireHost,
  requireIssuer,
  signedToken,
  tokenFor,
} from './access.ts'
export { requireRelease } from '../../../changes/kubernetes-cluster.ts'

export const kubernetesCluster = noun<KubernetesClusterParts, { readonly kubernetesClusters: KubernetesClusters }>({
  name: 'kubernetes_cluster',
  kinds: [
    kind(KubernetesCluster, {
      access: 'write',
      target: 'kubernetes_cluster',
      admission: admissionOf(kubernetesClusterChanges),
    }),
  ],
  open: (parts) => ({ kubernetesClusters: openKubernetesClusters(parts) }),
  endpoints: kubernetesClusterEndpoints,
  feeds: ({ kubernetesClusters, caches }) => [
    objectFeed('kubernetes_cluster', listKubernetesClusters, kubernetesClusters, [zonesOf(caches)]),
  ],
})
