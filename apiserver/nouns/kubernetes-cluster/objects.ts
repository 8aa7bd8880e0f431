/** Managed Kubernetes clusters for requests. */
import type { ClusterFacts } from '../../../domain/kubernetes-cluster/rules.ts'
import type { KubeObject } from '../../../kit/kube/object.ts'
import { Zone } from '../../../resources/catalog/index.ts'
import {
  clusterFactsOf,
  KubernetesCluster,
  type KubernetesClusterSpec,
  type KubernetesClusterStatus,
  type KubernetesClusterView,
  toKubernetesClusterView,
} from '../../../resources/kubernetes-cluster/index.ts'
import { type OperatedObjects, openOperated } from '../../kit/change/operate.ts'
import type { ObjectParts } from '../../kit/plain/objects.ts'

export type KubernetesClusterObject = KubeObject<KubernetesClusterSpec, KubernetesClusterStatus>
export type KubernetesClusters = OperatedObjects<
  KubernetesClusterSpec,
  KubernetesClusterStatus,
  KubernetesClusterView,
  ClusterFacts
>

export const openKubernetesClusters = (parts: ObjectParts): KubernetesClusters =>
  openOperated(parts, {
    name: 'kubernetes_cluster',
    title: 'Kubernetes cluster',
    resource: KubernetesCluster,
    surroundingsOf: ({ spec }) => ({ region: parts.caches.of(Zone).get({ name: spec.zone })?.spec.region ?? '' }),
    labelsOf: ({ labels }) => labels,
    toView: toKubernetesClusterView,
    factsOf: clusterFactsOf,
  })
