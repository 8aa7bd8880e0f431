/** The changes of a managed Kubernetes cluster. Functions create it for REST and for its controller, because the host
 *  of control planes is first asked what it offers. */
import {
  type ClusterFacts,
  judgeUpgrade,
  minorsOf,
  newestRelease,
  REPLICAS,
  requireChangeableCluster,
  requireDeletableCluster,
  requireRunningCluster,
  snapshotScheduleFault,
} from '../domain/kubernetes-cluster/rules.ts'
import { poolVersionFault } from '../domain/node-pool/rules.ts'
import { badField, conflict, zoneLacks } from '../domain/problem.ts'
import { claimCluster, releaseCluster } from '../db/kubernetes-cluster/index.ts'
import { newUuid } from '../kit/sys/random.ts'
import { Zone } from '../resources/catalog/index.ts'
import { accountNamespace } from '../resources/index.ts'
import * as routes from '../resources/kubernetes-cluster/index.ts'
import { clusterFactsOf, KubernetesCluster, type KubernetesClusterSpec } from '../resources/kubernetes-cluster/index.ts'
import { NodePool } from '../resources/node-pool/index.ts'
import { Labels } from '../resources/kit/shapes.ts'
import { changesOf, fromBody, type Subject } from './kit/define.ts'
import { requireReadable } from './kit/readable.ts'
import { ownNetwork } from './kit/references.ts'
import { type World, worldOf } from './kit/world.ts'
import { requirePrivateNetworks } from './kit/zone.ts'

interface Facts extends ClusterFacts {
  /** The release of Kubernetes that it runs; its minor version before it has run. */
  readonly release: string
}

/** According to the zone's status. Throws 400 for a zone that does not exist, and 409 with the cause for one without
 *  private networks or without Kubernetes. */
export function requireKubernetes(
  world: World,
  zone: string,
): { readonly region: string; readonly releases: readonly string[] } {
  requirePrivateNetworks(world, zone)
  const { spec, status } = world.find(Zone, { name: zone }) ?? {}
  const { kubernetesReleases: releases = [], kubernetesObstacle = 'nothing is known of it yet' } = status ?? {}
  if (spec === undefined || releases.length === 0)
    throw zoneLacks('kubernetes', `Zone ${zone} has no Kubernetes: ${kubernetesObstacle}.`)
  return { region: spec.region, releases }
}

/** The newest release of the minor version, or of all. Throws 400 for one that is not offered. */
export function requireRelease(releases: readonly string[], version: string | undefined, field = 'version'): string {
  const minors = minorsOf(releases)
  const release = newestRelease(version ?? minors[0] ?? '', releases)
  if (release === undefined) throw badField(field, `is not offered here; offered are ${minors.join(', ')}`)
  return release
}

/** The release for the upgrade of the cluster. Throws 400 for one that it cannot be upgraded to, and 409 while it does
 *  not run, or has a node pool that is too old for it. */
export function requireUpgrade(
  { accountId, id, spec, facts }: Omit<Subject<Pick<KubernetesClusterSpec, 'zone' | 'version'>, Facts>, 'before'>,
  world: World,
): string {
  requireRunningCluster(facts)
  const judged = judgeUpgrade(facts.release, spec.version, requireKubernetes(world, spec.zone).releases)
  if ('fault' in judged) throw badField('version', judged.fault)
  for (const { metadata, spec: pool } of world.list(NodePool)) {
    if (metadata.namespace !== accountNamespace(accountId) || pool.clusterId !== id) continue
    if (poolVersionFault(pool.version, judged.release) === undefined) continue
    const resource = { type: 'node_pool', id: metadata.name }
    throw conflict('state_not_allowed', `Its node pool ${pool.name} is too old: upgrade that first.`, { resource })
  }
  return judged.release
}

export const kubernetesClusterChanges = changesOf(KubernetesCluster, {
  name: 'kubernetes_cluster',
  title: 'Kubernetes cluster',
  finalizedWhen: 'nothing of the cluster is left',
  factsOf: (stored): Facts => ({
    ...clusterFactsOf(stored),
    release: stored.status?.kubernetesVersion ?? stored.spec.version,
  }),
  platform: ['controlPlaneRegion'],
  refers: { networkId: ownNetwork('creation') },
  reads: [Zone, NodePool],
  readable({ labels, etcdSnapshotSchedule }) {
    requireReadable('labels', Labels, labels)
    const fault = snapshotScheduleFault(etcdSnapshotSchedule)
    if (fault !== undefined) throw badField('etcdSnapshotSchedule', fault)
  },
  create: {
    name: 'create',
    operation: 'kubernetes_cluster.create',
    needs: 'standing',
    allow: ({ spec }, world) => void requireRelease(requireKubernetes(world, spec.zone).releases, spec.version),
    async claim(tx, { accountId, id: clusterId, spec }, { caches, random }) {
      const { networkId }: Partial<KubernetesClusterSpec> = spec
      // The network of the same manifest may be created later: the cluster waits for it.
      if (networkId === undefined) return
      const { zone, name, version } = spec
      const { region, releases } = requireKubernetes(worldOf(caches), zone)
      const controlPlane = {
        controlPlaneId: newUuid(random),
        release: requireRelease(releases, version),
        replicas: REPLICAS,
      }
      await claimCluster(tx, { accountId, clusterId, zone, region, name, networkId, ...controlPlane }, 'networkId')
    },
    release: (tx, { accountId, id }) => releaseCluster(tx, { accountId, clusterId: id }),
    detail: ({ zone, name, networkId, version }) => ({ zone, name, network_id: networkId, version }),
    by: { route: routes.createKubernetesCluster },
  },
  changes: {
    /** In REST, a function chooses the release of the operation. */
    upgrade: {
      sets: ['version'],
      operation: 'kubernetes_cluster.upgrade',
      allow: (subject, world) => void requireUpgrade(subject, world),
    },
    configure: {
      sets: ['labels', 'etcdSnapshotSchedule', 'etcdSnapshotRetention', 'isProtected'],
      action: 'update',
      allow: ({ facts }) => requireChangeableCluster(facts),
      by: fromBody(routes.updateKubernetesCluster, (body, spec: KubernetesClusterSpec) => ({
        labels: body.labels ?? spec.labels,
        etcdSnapshotSchedule: body.etcd_snapshot_schedule ?? spec.etcdSnapshotSchedule,
        etcdSnapshotRetention: body.etcd_snapshot_retention ?? spec.etcdSnapshotRetention,
        isProtected: body.is_protected ?? spec.isProtected,
      })),
    },
    /** In REST it is an operation, which shows the progress. */
    register: {
      sets: ['registersInPlatform'],
      action: 'update',
      allow: ({ facts }) => requireChangeableCluster(facts),
    },
  },
  remove: {
    name: 'delete',
    operation: 'kubernetes_cluster.delete',
    allow: ({ facts }) => requireDeletableCluster(facts),
    by: {
      route: routes.deleteKubernetesCluster,
      arguments: ({ associated }: { readonly associated: string }) => ({ associated }),
    },
  },
})
