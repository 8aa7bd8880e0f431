/** Kubernetes clusters that people make, change and delete past the API must satisfy its rules. Everything is checked
 *  and nothing is claimed: that is the controller's part, once the object is there. */
import {
  judgeUpgrade,
  minorOf,
  REPLICAS,
  requireChangeableCluster,
  requireDeletableCluster,
  requireRunningCluster,
  snapshotScheduleFault,
} from '../../domain/kubernetes-cluster.ts'
import { badField, forbidden } from '../../domain/problem.ts'
import { claimCluster } from '../../db/kubernetes-cluster/index.ts'
import { newUuid } from '../../kit/sys/random.ts'
import { Zone } from '../../resources/catalog/index.ts'
import { finalizerOf } from '../../resources/define.ts'
import {
  clusterFactsOf,
  KubernetesCluster,
  type KubernetesClusterSpec,
  type KubernetesClusterStatus,
} from '../../resources/kubernetes-cluster/index.ts'
import { Network } from '../../resources/network/index.ts'
import { admitDeletion, requireAccount, requireStanding } from '../admission/account-objects.ts'
import { type AdmissionParts, type AdmissionRules, type AdmittedChange, changesOf } from '../admission/kind.ts'
import { denyPlatformFields, type PlatformFields } from '../admission/platform-fields.ts'
import { requireLabels } from '../admission/readable-fields.ts'
import { rehearse } from '../admission/rehearse.ts'
import { storedOf } from '../list/stored.ts'
import type { KubernetesClusterObject } from './clusters.ts'
import { requireKubernetes, requireRelease } from './rules.ts'

const PLATFORM: PlatformFields = {
  noun: 'Kubernetes cluster',
  finalizer: finalizerOf(KubernetesCluster),
  goesWhen: 'nothing of the cluster is left',
}

/** Throws 403 for what only the platform writes, and 400 for what cannot be. */
function requireReadable(cluster: KubernetesClusterObject, before?: KubernetesClusterObject): void {
  denyPlatformFields(cluster, before, PLATFORM)
  if (cluster.spec.controlPlaneRegion !== before?.spec.controlPlaneRegion)
    throw forbidden('spec.controlPlaneRegion is written by the platform only.')
  requireLabels(cluster.spec)
  const fault = snapshotScheduleFault(cluster.spec.etcdSnapshotSchedule)
  if (fault !== undefined) throw badField('spec.etcdSnapshotSchedule', fault)
}

/** Throws the Problem that the API would answer. */
async function validateCreation(
  parts: AdmissionParts,
  cluster: KubernetesClusterObject,
): Promise<readonly AdmittedChange[]> {
  const {
    metadata: { name: clusterId, namespace = '' },
    spec,
  } = cluster
  const accountId = await requireAccount(parts, cluster, 'Kubernetes clusters')
  requireReadable(cluster)
  const { region, releases } = requireKubernetes(parts, spec.zone, 'spec.zone')
  const release = requireRelease(releases, spec.version, 'spec.version')
  await requireStanding(parts, accountId)
  // The network of the same manifest may come later: the cluster waits for it.
  if (parts.caches.of(Network).get({ namespace, name: spec.networkId })?.status?.ipv4Cidr !== undefined) {
    const made = { controlPlaneId: newUuid(parts.random), release, replicas: REPLICAS }
    const { zone, name, networkId } = spec
    const demand = { ...{ accountId, clusterId, zone, region, name, networkId }, ...made }
    await rehearse(parts, (tx) => claimCluster(tx, demand, 'spec.networkId'))
  }
  return [{ action: 'kubernetes_cluster.create', changes: [] }]
}

/** Throws the Problem that the API would answer. */
function validateChange(
  parts: AdmissionParts,
  cluster: KubernetesClusterObject,
  before: KubernetesClusterObject,
): readonly AdmittedChange[] {
  requireReadable(cluster, before)
  const { spec } = cluster
  const changes = changesOf(
    ['labels', 'etcdSnapshotSchedule', 'etcdSnapshotRetention', 'isProtected', 'registersInPlatform'],
    spec,
    before.spec,
  )
  const facts = clusterFactsOf(storedOf(before))
  const isUpgrade = spec.version !== before.spec.version
  if (isUpgrade) {
    requireRunningCluster(facts)
    const { releases } = requireKubernetes(parts, spec.zone)
    const judged = judgeUpgrade(before.status?.kubernetesVersion ?? before.spec.version, spec.version, releases)
    if ('fault' in judged) throw badField('spec.version', judged.fault)
  } else if (changes.length > 0) requireChangeableCluster(facts)
  return [
    ...(changes.length === 0 ? [] : [{ action: 'kubernetes_cluster.update', changes } as const]),
    ...(isUpgrade
      ? [
          {
            action: 'kubernetes_cluster.upgrade',
            changes: [{ field: 'version', before: minorOf(before.spec.version), after: spec.version }],
          } as const,
        ]
      : []),
  ]
}

export const kubernetesClusterAdmission: AdmissionRules<KubernetesClusterSpec, KubernetesClusterStatus> = {
  create: validateCreation,
  update: validateChange,
  delete: admitDeletion('kubernetes_cluster.delete', (before) =>
    requireDeletableCluster(clusterFactsOf(storedOf(before))),
  ),
  reads: [Zone, Network],
}
