import { KubernetesCluster } from '../../resources/kubernetes-cluster/index.ts'
import { kind } from '../admission/kind.ts'
import { noun } from '../noun.ts'
import { kubernetesClusterAdmission } from './admission.ts'
import { type KubernetesClusters, openKubernetesClusters } from './clusters.ts'
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
export { requireRelease } from './rules.ts'

export const kubernetesCluster = noun<KubernetesClusterParts, { readonly kubernetesClusters: KubernetesClusters }>({
  name: 'kubernetes_cluster',
  kinds: [
    kind(KubernetesCluster, { access: 'write', target: 'kubernetes_cluster', admission: kubernetesClusterAdmission }),
  ],
  open: (parts) => ({ kubernetesClusters: openKubernetesClusters(parts) }),
  endpoints: kubernetesClusterEndpoints,
})
